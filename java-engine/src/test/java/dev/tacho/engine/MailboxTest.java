package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.sampling.TokenLogprobs;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.metrics.event.FinishReason;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Merging, fairness and slowness of a mailbox; times are made up. */
class MailboxTest {
  private static final long SECOND = 1_000_000_000L;
  private static final StepOutputs NONE = new StepOutputs();

  /** Puts a letter into a completion, as text that belongs to no token. */
  private static boolean put(Mailbox mailbox, int index, char letter, long nanos) {
    SequenceOutput text = new SequenceOutput(new Rest(String.valueOf(letter)), new StopStringFilter(List.of()), 0);
    text.begin();
    text.flush();
    return mailbox.put(index, text, NONE, 0, MailboxTest::noLogprobs, nanos);
  }

  private static PositionLogprobs noLogprobs(int id, TokenLogprobs logprobs) {
    throw new AssertionError("no token, no log-probability: " + id + " " + logprobs);
  }

  /** A stream that has one text left. */
  private record Rest(String text) implements TextCodec.TextStream {
    @Override
    public String append(int id) {
      return "";
    }

    @Override
    public String flush() {
      return text;
    }
  }

  private static String take(Mailbox mailbox) throws InterruptedException {
    TokenDelta delta = mailbox.take();
    return delta == null ? "end" : delta.index() + delta.text();
  }

  @Test
  void whatWasNotReadIsMerged() throws Exception {
    Mailbox mailbox = new Mailbox(1, Mailbox.Limits.DEFAULT);
    put(mailbox, 0, 'a', 0);
    put(mailbox, 0, 'b', 0);
    assertThat(take(mailbox)).isEqualTo("0ab");
    put(mailbox, 0, 'c', 0);
    mailbox.finish(0, "d", FinishReason.LENGTH, null);
    TokenDelta last = mailbox.take();
    assertThat(last).isEqualTo(new TokenDelta(0, "cd", List.of(), List.of(), FinishReason.LENGTH, null));
    mailbox.close(null);
    assertThat(take(mailbox)).isEqualTo("end");
    assertThat(mailbox.choices().getFirst().text()).isEqualTo("abcd");
  }

  @Test
  void failureComesBehindTheLastDelta() throws Exception {
    Mailbox mailbox = new Mailbox(1, Mailbox.Limits.DEFAULT);
    put(mailbox, 0, 'a', 0);
    mailbox.close(new EngineClosedException());
    assertThat(take(mailbox)).isEqualTo("0a");
    assertThatThrownBy(mailbox::take).isInstanceOf(EngineClosedException.class);
  }

  @Test
  void completionsAreReadInTurnAlsoByASlowReader() throws Exception {
    Mailbox mailbox = new Mailbox(3, Mailbox.Limits.DEFAULT);
    for (int i = 0; i < 3; i++) {
      put(mailbox, i, 'a', 0);
    }
    assertThat(take(mailbox)).isEqualTo("0a");
    put(mailbox, 0, 'b', 0);
    assertThat(take(mailbox)).isEqualTo("1a");
    put(mailbox, 0, 'c', 0);
    assertThat(take(mailbox)).isEqualTo("2a");
    assertThat(take(mailbox)).isEqualTo("0bc");
  }

  @Test
  void aReaderThatKeepsUpWithEachCompletionIsNeverSlow() throws Exception {
    Mailbox mailbox = new Mailbox(2, new Mailbox.Limits(1 << 20, 30 * SECOND));
    mailbox.attach(0);
    put(mailbox, 0, 'a', 0);
    for (int second = 0; second < 100; second++) {
      assertThat(put(mailbox, 1, 'b', second * SECOND)).isFalse();
      take(mailbox);
      assertThat(put(mailbox, 0, 'a', second * SECOND)).isFalse();
    }
  }

  @Test
  void anythingUnreadForLongerThanTheLimitIsSlow() throws Exception {
    Mailbox mailbox = new Mailbox(1, new Mailbox.Limits(1 << 20, 30 * SECOND));
    mailbox.attach(0);
    assertThat(put(mailbox, 0, 'a', SECOND)).isFalse();
    assertThat(put(mailbox, 0, 'a', 31 * SECOND)).isFalse();
    assertThat(put(mailbox, 0, 'a', 31 * SECOND + 1)).isTrue();
    take(mailbox);
    assertThat(put(mailbox, 0, 'a', 100 * SECOND)).isFalse();
  }

  @Test
  void aReaderThatComesLateIsNotSlowForWhatLayThere() throws Exception {
    Mailbox mailbox = new Mailbox(1, new Mailbox.Limits(4, 30 * SECOND));
    for (int i = 0; i < 10; i++) {
      assertThat(put(mailbox, 0, 'a', 0)).as("nobody reads").isFalse();
    }
    mailbox.attach(100 * SECOND);
    assertThat(put(mailbox, 0, 'a', 101 * SECOND)).isFalse();
    assertThat(put(mailbox, 0, 'a', 102 * SECOND)).isFalse();
    assertThat(put(mailbox, 0, 'a', 103 * SECOND)).as("6 bytes since it came, 4 allowed").isTrue();
    take(mailbox);
    assertThat(put(mailbox, 0, 'a', 200 * SECOND)).isFalse();
    assertThat(put(mailbox, 0, 'a', 201 * SECOND)).isFalse();
    assertThat(put(mailbox, 0, 'a', 201 * SECOND)).isTrue();
  }
}
