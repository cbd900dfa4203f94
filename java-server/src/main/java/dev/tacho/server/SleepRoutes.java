package dev.tacho.server;

import dev.tacho.engine.Engine;
import dev.tacho.engine.SleepMode;
import dev.tacho.engine.SleepTag;
import dev.tacho.metrics.prometheus.OperationMetrics;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * {@code POST /sleep?level=&mode=}, {@code POST /wake_up?tags=} (which may be given several times) and {@code GET
 * /is_sleeping}. Served only if the configuration enables it, as any client may then stop the engine.
 */
final class SleepRoutes {
  static final String SLEEP = "/sleep";
  static final String WAKE_UP = "/wake_up";
  static final String IS_SLEEPING = "/is_sleeping";

  private final Engine engine;

  SleepRoutes(Engine engine) {
    this.engine = engine;
  }

  void sleep(ServerRequest request, ServerResponse response) {
    int level = level(request.query().first("level").orElse("1"));
    SleepMode mode = mode(request.query().first("mode").orElse("abort"));
    try (OperationMetrics.Call _ = begin("sleep")) {
      engine.sleep(level, mode);
    }
    response.status(200).send();
  }

  private OperationMetrics.Call begin(String operation) {
    return OperationMetrics.begin(engine.metrics().registry(), OperationMetrics.Routes.SLEEP_MODE, operation);
  }

  private static int level(String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      throw ApiError.invalid("level", "level: must be 0, 1 or 2, is '" + text + "'");
    }
  }

  private static SleepMode mode(String text) {
    for (SleepMode mode : SleepMode.values()) {
      if (mode.name().toLowerCase(Locale.ROOT).equals(text)) {
        return mode;
      }
    }
    throw ApiError.invalid("mode", "mode: must be abort, wait or keep, is '" + text + "'");
  }

  void wake(ServerRequest request, ServerResponse response) {
    List<String> labels = request.query().contains("tags") ? request.query().all("tags") : List.of();
    Set<SleepTag> tags = EnumSet.noneOf(SleepTag.class);
    labels.forEach(label -> tags.add(SleepTag.of(label)));
    try (OperationMetrics.Call _ = begin("wake")) {
      engine.wake(tags);
    }
    response.status(200).send();
  }

  void isSleeping(ServerRequest request, ServerResponse response) {
    HttpApi.sendJson(response, 200, Json.object().put("is_sleeping", engine.isSleeping()));
  }
}
