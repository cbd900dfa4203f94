package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.Configurator.ExecutionStatus;
import ch.qos.logback.core.ConsoleAppender;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;

class LoggingTest {
  @Test
  void logbackFindsItAsAService() {
    assertThat(ServiceLoader.load(Configurator.class)).hasExactlyElementsOfTypes(Logging.class);
  }

  @Test
  void aLevelThatIsNoneIsNamedWithTheLevelsThereAre() {
    assertThat(Logging.faultOf("VERBOSE"))
        .hasValue("TACHO_LOG_LEVEL must be one of TRACE, DEBUG, INFO, WARN, ERROR, OFF, is 'VERBOSE'");
    assertThat(Logging.faultOf("")).isPresent();
    assertThat(Logging.faultOf("debug")).isEmpty();
    assertThat(Logging.faultOf(null)).isEmpty();
  }

  @Test
  void linesGoToStderrAndLibrariesAreQuieter() {
    LoggerContext loggers = new LoggerContext();
    assertThat(new Logging().configure(loggers)).isEqualTo(ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY);
    ch.qos.logback.classic.Logger root = loggers.getLogger(Logger.ROOT_LOGGER_NAME);
    assertThat(root.iteratorForAppenders()).toIterable().hasSize(1);
    ConsoleAppender<?> stderr = (ConsoleAppender<?>) root.getAppender("STDERR");
    assertThat(stderr.getTarget()).isEqualTo("System.err");
    assertThat(stderr.isStarted()).isTrue();
    assertThat(loggers.getLogger("io.helidon.webserver").getEffectiveLevel()).isEqualTo(Level.WARN);
    assertThat(loggers.getLogger("io.helidon.webserver.LoomServer").getEffectiveLevel()).isEqualTo(Level.OFF);
    assertThat(loggers.getLogger("io.helidon.webserver.http1.Http1Connection").getEffectiveLevel())
        .isEqualTo(Level.ERROR);
    assertThat(loggers.getLogger("ai.djl.util").getEffectiveLevel()).isEqualTo(Level.WARN);
  }

  @Test
  void aFileThatTheUserNamesTakesItsPlace() {
    LoggerContext loggers = new LoggerContext();
    System.setProperty("logback.configurationFile", "mine.xml");
    try {
      assertThat(new Logging().configure(loggers)).isEqualTo(ExecutionStatus.INVOKE_NEXT_IF_ANY);
    } finally {
      System.clearProperty("logback.configurationFile");
    }
    assertThat(loggers.getLogger(Logger.ROOT_LOGGER_NAME).iteratorForAppenders()).isExhausted();
  }

  @Test
  void anApplicationsOwnFileTakesItsPlace(@TempDir Path classes) throws Exception {
    try (URLClassLoader application = new URLClassLoader(new URL[] {classes.toUri().toURL()}, null)) {
      assertThat(Logging.isConfigured(application)).isFalse();
      Files.writeString(classes.resolve("logback.xml"), "<configuration/>");
      assertThat(Logging.isConfigured(application)).isTrue();
    }
  }
}
