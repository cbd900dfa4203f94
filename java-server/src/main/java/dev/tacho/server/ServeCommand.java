package dev.tacho.server;

import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code tacho serve}: the HTTP server. */
@Command(
    name = "serve",
    description = "Serves a model over HTTP, in the OpenAI API's form, with /metrics for Prometheus.",
    sortOptions = false)
final class ServeCommand implements Callable<Integer> {
  private static final Duration DRAIN = Duration.ofSeconds(5);

  @Spec private CommandSpec spec;

  @Option(names = "--host", paramLabel = "HOST", description = "address to listen on (default ${DEFAULT-VALUE})")
  private String host = "127.0.0.1";

  @Option(
      names = "--port",
      paramLabel = "PORT",
      description = "port to listen on; 0 for any free one (default ${DEFAULT-VALUE})")
  private int port = 8000;

  @Override
  public Integer call() throws InterruptedException {
    if (port < 0 || port > 65535) {
      throw new picocli.CommandLine.ParameterException(
          spec.commandLine(), "--port: must be in [0, 65535], is " + port);
    }
    EngineConfig config = EngineOptions.config(spec.commandLine().getParseResult(), System.getenv());
    CountDownLatch stop = new CountDownLatch(1);
    CountDownLatch stopped = new CountDownLatch(1);
    HttpApi.checkAddress(host, port);
    Engine engine = Engine.open(config);
    try {
      HttpApi api = HttpApi.start(engine, host, port);
      Runtime.getRuntime()
          .addShutdownHook(
              Thread.ofPlatform()
                  .name("tacho-shutdown")
                  .unstarted(
                      () -> {
                        stop.countDown();
                        awaitUninterruptibly(stopped);
                      }));
      spec.commandLine().getOut().println("listening on " + api.url());
      spec.commandLine().getOut().flush();
      stop.await();
      engine.close(DRAIN);
      api.close();
    } finally {
      engine.close();
      stopped.countDown();
    }
    return 0;
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
