package dev.tacho.server;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.PatternLayoutEncoder;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.ConfiguratorRank;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.spi.ContextAwareBase;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * The log of the command line: lines on stderr from the level {@code TACHO_LOG_LEVEL} on, INFO without it. Logback
 * finds this class as a service, and asks it once, before the first line. In Java and not in XML, whose parser takes as
 * long as the rest of a logger; a file that {@code -Dlogback.configurationFile} names takes its place, and so does an
 * application's own {@code logback.xml} on the class path.
 */
@ConfiguratorRank(ConfiguratorRank.CUSTOM_NORMAL_PRIORITY)
public final class Logging extends ContextAwareBase implements Configurator {
  /** The environment variable with the level. */
  static final String LEVEL_VARIABLE = "TACHO_LOG_LEVEL";

  private static final String FILE_PROPERTY = "logback.configurationFile";
  private static final List<String> RESOURCES = List.of("logback-test.xml", "logback.xml");

  private static final List<String> LEVELS = List.of("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF");

  private static final String PATTERN = "%d{HH:mm:ss.SSS} %-5level %logger{0}: %msg%kvp{DOUBLE}%n";

  @Override
  public ExecutionStatus configure(LoggerContext loggers) {
    ClassLoader classPath = Thread.currentThread().getContextClassLoader();
    if (isConfigured(classPath == null ? Logging.class.getClassLoader() : classPath)) {
      return ExecutionStatus.INVOKE_NEXT_IF_ANY;
    }
    PatternLayoutEncoder encoder = new PatternLayoutEncoder();
    encoder.setContext(loggers);
    encoder.setPattern(PATTERN);
    encoder.start();
    ConsoleAppender<ILoggingEvent> stderr = new ConsoleAppender<>();
    stderr.setContext(loggers);
    stderr.setName("STDERR");
    stderr.setTarget("System.err");
    stderr.setEncoder(encoder);
    stderr.start();
    ch.qos.logback.classic.Logger root = loggers.getLogger(Logger.ROOT_LOGGER_NAME);
    root.setLevel(Level.toLevel(System.getenv(LEVEL_VARIABLE), Level.INFO));
    root.addAppender(stderr);
    loggers.getLogger("io.helidon").setLevel(Level.WARN);
    // Tells of a port in use once more, with a stack; the command line says it in one line.
    loggers.getLogger("io.helidon.webserver.LoomServer").setLevel(Level.OFF);
    // Warns, with a stack trace, of every client that goes away within a request's head.
    loggers.getLogger("io.helidon.webserver.http1.Http1Connection").setLevel(Level.ERROR);
    loggers.getLogger("ai.djl").setLevel(Level.WARN);
    return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
  }

  /** What is wrong with a level that the environment gives, if anything is. */
  static Optional<String> faultOf(@Nullable String level) {
    return level == null || LEVELS.contains(level.toUpperCase(Locale.ROOT))
        ? Optional.empty()
        : Optional.of(LEVEL_VARIABLE + " must be one of " + String.join(", ", LEVELS) + ", is '" + level + "'");
  }

  /** True if somebody else says how to log. */
  static boolean isConfigured(ClassLoader classPath) {
    return System.getProperty(FILE_PROPERTY) != null
        || RESOURCES.stream().anyMatch(name -> classPath.getResource(name) != null);
  }
}
