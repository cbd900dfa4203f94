package dev.tacho.server;

import io.helidon.common.buffers.BufferData;
import io.helidon.common.buffers.DataReader;
import io.helidon.common.buffers.DataWriter;
import io.helidon.common.concurrency.limits.Limit;
import io.helidon.common.socket.HelidonSocket;
import io.helidon.common.socket.PeerInfo;
import io.helidon.webserver.ConnectionContext;
import io.helidon.webserver.ListenerContext;
import io.helidon.webserver.ProxyProtocolData;
import io.helidon.webserver.Router;
import io.helidon.webserver.http1.Http1Config;
import io.helidon.webserver.http1.Http1ConnectionSelector;
import io.helidon.webserver.spi.ServerConnection;
import io.helidon.webserver.spi.ServerConnectionSelector;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Notices that the client of the request being handled has gone away, also while nothing is written to it: while a
 * request is watched, the connection's next read is already under way on a virtual thread, and it fails or ends when
 * the client closes. What it reads instead, the beginning of a next request, is what the connection's own thread gets
 * next, and another read follows.
 *
 * <p>{@link #selector} must be among the server's connection selectors. A handler calls {@link #watch} on the thread
 * that handles the request.
 */
final class ClientConnection {
  private static final ThreadLocal<@Nullable ReadAhead> CURRENT = new ThreadLocal<>();

  private ClientConnection() {}

  /**
   * HTTP/1.1 as Helidon does it, over connections that can be watched.
   *
   * @param writes has an eye on what is written to them
   */
  static ServerConnectionSelector selector(WriteWatch writes) {
    return new Selector(Http1ConnectionSelector.builder().config(Http1Config.create()).build(), writes);
  }

  /**
   * Watches the client of the request that this thread handles, until closed. The request's body must have been read.
   *
   * @param gone called at most once, on a thread of its own, when the client has closed its connection
   */
  static Watch watch(Runnable gone) {
    ReadAhead reader = CURRENT.get();
    if (reader == null) {
      throw new IllegalStateException("this thread handles no connection of ClientConnection.selector()");
    }
    return reader.watch(gone);
  }

  /** Ends the watching: {@code gone} is not called any more once this has returned. */
  interface Watch extends AutoCloseable {
    @Override
    void close();
  }

  /** Reads of one connection, the next few of which may be started early. Used by the connection's thread. */
  private static final class ReadAhead {
    /** What a client sends while it waits for an answer is kept up to this number of reads; then nobody watches. */
    private static final int MAX_EARLY_READS = 8;

    private final DataReader source;
    private final DataReader reader = new DataReader(this::next);
    private final Deque<CompletableFuture<byte @Nullable []>> early = new ArrayDeque<>();

    ReadAhead(DataReader source) {
      this.source = source;
    }

    Watch watch(Runnable gone) {
      CompletableFuture<Void> closed = new CompletableFuture<>();
      CompletableFuture<Void> called = new CompletableFuture<>();
      Runnable once =
          () -> {
            if (closed.complete(null)) {
              try {
                gone.run();
              } finally {
                called.complete(null);
              }
            }
          };
      CompletableFuture<byte @Nullable []> last;
      synchronized (this) {
        if (early.isEmpty()) {
          early.add(start());
        }
        last = early.getLast();
      }
      follow(last, closed, once);
      return () -> {
        boolean open;
        synchronized (ReadAhead.this) {
          open = closed.complete(null);
        }
        if (!open) {
          called.join();
        }
      };
    }

    /** Reads on behind a read that brings bytes, as long as somebody watches. */
    private void follow(CompletableFuture<byte @Nullable []> read, CompletableFuture<Void> closed, Runnable gone) {
      var _ =
          read.whenComplete(
              (bytes, fault) -> {
                if (bytes == null || fault != null) {
                  gone.run();
                  return;
                }
                CompletableFuture<byte @Nullable []> following;
                synchronized (this) {
                  if (closed.isDone() || early.size() >= MAX_EARLY_READS) {
                    return;
                  }
                  following = start();
                  early.add(following);
                }
                follow(following, closed, gone);
              });
    }

    private CompletableFuture<byte @Nullable []> start() {
      return CompletableFuture.supplyAsync(this::read, Thread::startVirtualThread);
    }

    /** What the connection gets next; null at the end of the stream. */
    private byte @Nullable [] next() {
      CompletableFuture<byte @Nullable []> pending;
      synchronized (this) {
        pending = early.poll();
      }
      return pending == null ? read() : Futures.join(pending);
    }

    private byte @Nullable [] read() {
      try {
        source.ensureAvailable();
      } catch (DataReader.InsufficientDataAvailableException e) {
        return null;
      }
      return source.readBuffer().readBytes();
    }
  }

  private record Selector(Http1ConnectionSelector http1, WriteWatch writes) implements ServerConnectionSelector {
    @Override
    public int bytesToIdentifyConnection() {
      return http1.bytesToIdentifyConnection();
    }

    /** Whatever it is gets an answer, if only that it cannot be answered. */
    @Override
    public Support supports(BufferData data) {
      return Support.SUPPORTED;
    }

    @Override
    public Set<String> supportedApplicationProtocols() {
      return http1.supportedApplicationProtocols();
    }

    @Override
    public ServerConnection connection(ConnectionContext context) {
      byte[] head = context.dataReader().getBuffer(context.dataReader().available()).readBytes();
      if (http1.supports(BufferData.create(head)) == Support.UNSUPPORTED) {
        return new UnknownProtocol(context.dataWriter(), new String(head, StandardCharsets.ISO_8859_1));
      }
      ReadAhead reads = new ReadAhead(context.dataReader());
      WriteWatch.Writer writer = writes.over(context.dataWriter(), context.serverSocket()::close);
      return new Connection(http1.connection(new Context(context, reads.reader, writer)), reads, writer);
    }
  }

  /** Says that it speaks HTTP/1.1 alone, and ends the connection. */
  private record UnknownProtocol(DataWriter writer, String head) implements ServerConnection {
    private static final Pattern OTHER_VERSION = Pattern.compile("[^\\n]* HTTP/\\d(\\.\\d)?\\r\\n");

    @Override
    public void handle(Limit limit) {
      boolean otherVersion = OTHER_VERSION.matcher(head).lookingAt();
      ApiError error =
          otherVersion
              ? ApiError.refused(505, "this server speaks HTTP/1.1", null)
              : ApiError.refused(400, "the first line is not that of an HTTP/1.1 request, ended by CR and LF", null);
      byte[] body = Json.bytes(error.toJson());
      String answer =
          "HTTP/1.1 " + error.status() + (otherVersion ? " HTTP Version Not Supported" : " Bad Request")
              + "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + body.length
              + "\r\n\r\n";
      writer.writeNow(BufferData.create(BufferData.create(answer), BufferData.create(body)));
    }

    @Override
    public Duration idleTime() {
      return Duration.ZERO;
    }

    @Override
    public void close(boolean interrupt) {}
  }

  private record Connection(ServerConnection http1, ReadAhead reads, WriteWatch.Writer writer)
      implements ServerConnection {
    @Override
    public void handle(Limit limit) throws InterruptedException {
      CURRENT.set(reads);
      try {
        http1.handle(limit);
      } finally {
        CURRENT.remove();
        writer.ended();
      }
    }

    @Override
    public Duration idleTime() {
      return http1.idleTime();
    }

    @Override
    public void close(boolean interrupt) {
      http1.close(interrupt);
    }
  }

  /** The context of a connection with another reader and another writer. */
  private record Context(ConnectionContext context, DataReader dataReader, DataWriter dataWriter)
      implements ConnectionContext {
    @Override
    public ListenerContext listenerContext() {
      return context.listenerContext();
    }

    @Override
    public ExecutorService executor() {
      return context.executor();
    }

    @Override
    public Router router() {
      return context.router();
    }

    @Override
    public Optional<ProxyProtocolData> proxyProtocolData() {
      return context.proxyProtocolData();
    }

    @Override
    public HelidonSocket serverSocket() {
      return context.serverSocket();
    }

    @Override
    public PeerInfo remotePeer() {
      return context.remotePeer();
    }

    @Override
    public PeerInfo localPeer() {
      return context.localPeer();
    }

    @Override
    public boolean isSecure() {
      return context.isSecure();
    }

    @Override
    public String socketId() {
      return context.socketId();
    }

    @Override
    public String childSocketId() {
      return context.childSocketId();
    }
  }
}
