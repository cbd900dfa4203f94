package dev.tacho.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.engine.Completion;
import dev.tacho.engine.Engine;
import dev.tacho.engine.GenerationHandle;
import dev.tacho.engine.TokenDelta;
import io.helidon.common.buffers.DataReader;
import io.helidon.http.HeaderName;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Status;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.ReentrantLock;

/**
 * {@code POST /v1/completions}: one answer, or pieces of it as server-sent events. Runs on the connection's virtual
 * thread. A client that goes away has its requests cancelled.
 */
final class CompletionsHandler implements Handler {
  private static final byte[] DONE = "data: [DONE]\n\n".getBytes(StandardCharsets.UTF_8);
  private static final byte[] DATA = "data: ".getBytes(StandardCharsets.UTF_8);
  private static final byte[] END = "\n\n".getBytes(StandardCharsets.UTF_8);

  private static final HeaderName RANK = HeaderNames.create("X-data-parallel-rank");

  private final Engine engine;

  CompletionsHandler(Engine engine) {
    this.engine = engine;
  }

  @Override
  public void handle(ServerRequest request, ServerResponse response) {
    CompletionRequest body = CompletionRequest.parse(bytesOf(request, response));
    if (body.model() != null && !body.model().equals(engine.modelName())) {
      throw new ApiError.Thrown(
          ApiError.refused(
              404,
              "the model '" + body.model() + "' does not exist; this server has '" + engine.modelName() + "'",
              "model_not_found"));
    }
    String base = body.requestId() == null ? UUID.randomUUID().toString().replace("-", "") : body.requestId();
    String id = "cmpl-" + base;
    Handles handles = new Handles();
    OptionalInt rank = rank(request);
    try (ClientConnection.Watch _ = ClientConnection.watch(handles::cancel)) {
      List<GenerationHandle> submitted = submitAll(body, id, rank, handles);
      CompletionJson json =
          new CompletionJson(id, Instant.now().getEpochSecond(), engine.modelName(), body.sampling().n());
      if (body.stream()) {
        stream(body, submitted, json, response);
      } else {
        byte[] whole = Json.bytes(json.whole(completions(submitted)));
        response.header(HeaderNames.CONTENT_TYPE, "application/json").send(whole);
      }
    } finally {
      handles.cancel();
    }
  }

  /** The number of the engine that the client wants, where there are several. */
  private static OptionalInt rank(ServerRequest request) {
    if (!request.headers().contains(RANK)) {
      return OptionalInt.empty();
    }
    String text = request.headers().get(RANK).get();
    try {
      return OptionalInt.of(Integer.parseInt(text));
    } catch (NumberFormatException e) {
      throw ApiError.invalid("data_parallel_rank", RANK.defaultCase() + ": must be a whole number, is '" + text + "'");
    }
  }

  /** The body; where it does not end as it says, nothing can be read behind it and the connection is closed. */
  private static byte[] bytesOf(ServerRequest request, ServerResponse response) {
    if (!request.content().hasEntity()) {
      return new byte[0];
    }
    try {
      return request.content().as(byte[].class);
    } catch (DataReader.InsufficientDataAvailableException e) {
      throw new CloseConnectionException("the client has gone away within its body", e);
    } catch (DataReader.IncorrectNewLineException | IllegalArgumentException e) {
      response.header(HeaderValues.CONNECTION_CLOSE);
      throw ApiError.invalid(null, "the body is not chunked as HTTP/1.1 says");
    }
  }

  /** Submits a request for each prompt and waits until all are accepted, so that a refusal is still an HTTP status. */
  private List<GenerationHandle> submitAll(CompletionRequest body, String id, OptionalInt rank, Handles handles) {
    int prompts = body.prompts().size();
    for (int i = 0; i < prompts; i++) {
      if (!handles.add(engine.submit(body.toGeneration(i, prompts == 1 ? id : id + "-" + i, rank)))) {
        throw new CloseConnectionException("the client has gone away");
      }
    }
    List<GenerationHandle> submitted = handles.all();
    for (GenerationHandle handle : submitted) {
      Futures.join(handle.accepted());
    }
    return submitted;
  }

  private static void stream(
      CompletionRequest body,
      List<GenerationHandle> handles,
      CompletionJson json,
      ServerResponse response) {
    response
        .status(Status.OK_200)
        .header(HeaderNames.CONTENT_TYPE, "text/event-stream; charset=utf-8")
        .header(HeaderNames.CACHE_CONTROL, "no-cache");
    try (OutputStream out = response.outputStream()) {
      EventStream events = new EventStream(out);
      try {
        readAll(
            handles,
            (prompt, delta, offset) -> events.send(json.piece(prompt, delta, offset, body.includeUsage())));
        if (body.includeUsage()) {
          events.send(json.usagePiece(completions(handles)));
        }
      } catch (RuntimeException e) {
        if (e instanceof UncheckedIOException) {
          throw e;
        }
        events.send(ApiError.of(e).toJson());
      }
      events.done();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Waits for the ends of all. */
  private static List<Completion> completions(List<GenerationHandle> handles) {
    return handles.stream().map(handle -> Futures.join(handle.completion())).toList();
  }

  private interface DeltaSink {
    void accept(int prompt, TokenDelta delta, int textOffset);
  }

  /** Reads the deltas of all handles: of one on this thread, of several on a virtual thread each. */
  private static void readAll(List<GenerationHandle> handles, DeltaSink sink) {
    if (handles.size() == 1) {
      read(0, handles.getFirst(), sink);
      return;
    }
    List<CompletableFuture<Void>> readers = new ArrayList<>();
    for (int i = 0; i < handles.size(); i++) {
      int prompt = i;
      readers.add(
          CompletableFuture.runAsync(() -> read(prompt, handles.get(prompt), sink), Thread::startVirtualThread));
    }
    for (CompletableFuture<Void> reader : readers) {
      try {
        Futures.join(reader);
      } catch (RuntimeException e) {
        handles.forEach(GenerationHandle::cancel);
        readers.forEach(CompletionsHandler::awaitQuietly);
        throw e;
      }
    }
  }

  private static void awaitQuietly(CompletableFuture<Void> reader) {
    try {
      reader.join();
    } catch (CompletionException | CancellationException e) {
      // The first failure of the readers is the one that is told.
    }
  }

  private static void read(int prompt, GenerationHandle handle, DeltaSink sink) {
    Map<Integer, Integer> offsets = new HashMap<>();
    for (TokenDelta delta : handle.deltas()) {
      int offset = offsets.getOrDefault(delta.index(), 0);
      sink.accept(prompt, delta, offset);
      offsets.put(delta.index(), offset + delta.text().length());
    }
  }

  /** Server-sent events on one response; any thread may send. */
  private static final class EventStream {
    private final OutputStream out;
    private final ReentrantLock lock = new ReentrantLock();

    EventStream(OutputStream out) {
      this.out = out;
    }

    void send(JsonNode event) {
      write(DATA, Json.bytes(event), END);
    }

    void done() {
      write(DONE);
    }

    private void write(byte[]... parts) {
      lock.lock();
      try {
        for (byte[] part : parts) {
          out.write(part);
        }
        out.flush();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } finally {
        lock.unlock();
      }
    }
  }
}
