package dev.tacho.server;

import dev.tacho.engine.ConfigurationException;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineException;
import dev.tacho.engine.EngineOption;
import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.PromptTooLongException;
import java.io.PrintWriter;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The {@code tacho} command line. Exit codes: 0 done, 1 failed, 2 the caller's fault: an option or a prompt. */
@Command(
    name = "tacho",
    description = "LLM inference on the JVM that measures itself.",
    mixinStandardHelpOptions = true,
    scope = ScopeType.INHERIT,
    versionProvider = Main.VersionText.class,
    synopsisSubcommandLabel = "COMMAND")
public final class Main implements Runnable {
  /** Commands that open an engine: what it needs is loaded while their options are read. */
  static final Set<String> OPEN_AN_ENGINE = Set.of("serve", "generate", "bench", "demo");

  private static final List<String> COMMANDS = List.of("serve", "generate", "bench", "simulate", "doctor", "demo");

  @Spec private CommandLine.Model.CommandSpec spec;

  private Main() {}

  /** Runs a command and exits with its code. */
  public static void main(String[] args) {
    Logging.faultOf(System.getenv(Logging.LEVEL_VARIABLE))
        .ifPresent(
            fault -> {
              System.err.println("tacho: " + oneLine(fault));
              System.exit(2);
            });
    if (args.length > 0 && OPEN_AN_ENGINE.contains(args[0])) {
      Engine.preload();
    }
    System.exit(commandLine(args).execute(args));
  }

  /** The command line for these words: with the command that the first one names, or else with all commands. */
  static CommandLine commandLine(String... args) {
    CommandLine main = new CommandLine(new Main());
    boolean named = args.length > 0 && COMMANDS.contains(args[0]);
    for (String name : named ? List.of(args[0]) : COMMANDS) {
      main.addSubcommand(command(name));
    }
    main.setExecutionExceptionHandler(Main::failed);
    main.setParameterExceptionHandler(Main::wrongUsage);
    main.setCaseInsensitiveEnumValuesAllowed(true);
    return main;
  }

  private static CommandLine command(String name) {
    return switch (name) {
      case "serve" -> withEngineOptions(new ServeCommand(), EnumSet.noneOf(EngineOption.class));
      case "generate" -> withEngineOptions(new GenerateCommand(), EnumSet.of(EngineOption.SEED));
      case "bench" -> withEngineOptions(new BenchCommand(), EnumSet.noneOf(EngineOption.class));
      case "simulate" ->
          withEngineOptions(new SimulateCommand(), EnumSet.complementOf(SimulateCommand.ENGINE_OPTIONS));
      case "doctor" -> new CommandLine(new DoctorCommand());
      case "demo" -> new CommandLine(new DemoCommand());
      default -> throw new IllegalArgumentException("no such command: " + name);
    };
  }

  private static CommandLine withEngineOptions(Object command, EnumSet<EngineOption> taken) {
    CommandLine line = new CommandLine(command);
    EngineOptions.addTo(line.getCommandSpec(), taken);
    return line;
  }

  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "a command is missing");
  }

  private static int wrongUsage(ParameterException fault, String[] args) {
    PrintWriter err = fault.getCommandLine().getErr();
    err.println("tacho: " + fault.getMessage());
    CommandLine.UnmatchedArgumentException.printSuggestions(fault, err);
    err.println("see " + fault.getCommandLine().getCommandSpec().qualifiedName() + " --help");
    err.flush();
    return 2;
  }

  /** One line for what a user can mend; the stack as well for what only we can. */
  private static int failed(Exception fault, CommandLine line, CommandLine.ParseResult parsed) {
    PrintWriter err = line.getErr();
    boolean known = fault instanceof EngineException || fault instanceof ListenException;
    if (known || fault instanceof CommandFailedException) {
      err.println("tacho: " + oneLine(String.valueOf(fault.getMessage())));
    } else {
      err.println("tacho: " + fault);
      fault.printStackTrace(err);
    }
    err.flush();
    boolean ofTheCaller =
        fault instanceof ConfigurationException
            || fault instanceof InvalidRequestException
            || fault instanceof PromptTooLongException;
    return ofTheCaller ? 2 : 1;
  }

  /** Messages show names and values from files, which may hold anything, also what a terminal would obey. */
  private static String oneLine(String message) {
    StringBuilder line = new StringBuilder(message.length());
    message
        .codePoints()
        .forEach(c -> line.append(Character.isISOControl(c) ? String.format("\\u%04x", c) : Character.toString(c)));
    return line.toString();
  }

  /** For {@code --version}. */
  static final class VersionText implements IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {"tacho " + Version.current()};
    }
  }
}
