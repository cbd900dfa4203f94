package dev.tacho.engine.kernel;

import dev.tacho.engine.UnsupportedException;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which kernels an engine runs on: the word {@code auto} takes the first provider that is ready of cuda, native, vector
 * and scalar; any other word names one, and is an error if that one is missing. Never a silent fallback: one log line
 * says what was taken and why the ones before it were not.
 *
 * @param kernels the chosen ones
 * @param candidates the providers that were asked, in order; the last one is the chosen
 */
public record KernelSelection(Kernels kernels, List<Candidate> candidates) {
  /** The system property with the word. */
  public static final String PROPERTY = "tacho.kernels";

  /** The word for the first provider that is ready. */
  public static final String AUTO = "auto";

  private static final List<String> ORDER = List.of("cuda", "native", "vector", "scalar");

  private static final Logger LOG = LoggerFactory.getLogger(KernelSelection.class);

  /** Copies the list. */
  public KernelSelection {
    candidates = List.copyOf(candidates);
  }

  /**
   * What asking one provider gave.
   *
   * @param id the provider's word
   * @param ready whether its kernels can be had
   * @param detail the kernels' description, or why they cannot be had
   * @param caution why they will be slow here, or the empty string
   */
  public record Candidate(String id, boolean ready, String detail, String caution) {}

  /** The word of {@code -Dtacho.kernels}, {@code auto} without it. */
  public static String configured() {
    return System.getProperty(PROPERTY, AUTO);
  }

  /**
   * Chooses among the providers of this build and logs the choice.
   *
   * @param word auto, cuda, native, vector or scalar
   * @throws UnsupportedException if the word is another one, or names kernels that are missing
   */
  public static KernelSelection select(String word) {
    return select(word, providers());
  }

  /** Asks every provider of this build, those behind the first ready one too: for a report, not for a choice. */
  public static List<Candidate> survey() {
    return providers().stream().map(KernelSelection::surveyed).toList();
  }

  private static Candidate surveyed(KernelProvider provider) {
    try {
      return candidate(provider.id(), provider.find());
    } catch (UnsupportedException e) {
      // A wrong setting stops a choice; a report names it and goes on.
      return new Candidate(provider.id(), false, String.valueOf(e.getMessage()), "");
    }
  }

  private static List<KernelProvider> providers() {
    List<KernelProvider> providers = new ArrayList<>();
    ServiceLoader.load(KernelProvider.class, KernelProvider.class.getClassLoader()).forEach(providers::add);
    providers.sort((a, b) -> Integer.compare(ORDER.indexOf(a.id()), ORDER.indexOf(b.id())));
    return providers;
  }

  /**
   * Chooses among given providers, in their order.
   *
   * @param word auto or a provider's word
   * @param providers the providers to ask
   */
  static KernelSelection select(String word, List<KernelProvider> providers) {
    String option = "kernels=" + word;
    List<String> words = new ArrayList<>(List.of(AUTO));
    providers.forEach(provider -> words.add(provider.id()));
    if (!words.contains(word)) {
      throw new UnsupportedException(option, "it must be one of " + String.join(", ", words));
    }
    List<Candidate> asked = new ArrayList<>();
    for (KernelProvider provider : providers) {
      if (word.equals(AUTO) || word.equals(provider.id())) {
        KernelProvider.Found found = provider.find();
        asked.add(candidate(provider.id(), found));
        if (found instanceof KernelProvider.Ready(Kernels kernels, String _)) {
          KernelSelection selection = new KernelSelection(kernels, asked);
          selection.log();
          return selection;
        }
      }
    }
    throw new UnsupportedException(option, reasons(asked));
  }

  private static Candidate candidate(String id, KernelProvider.Found found) {
    return switch (found) {
      case KernelProvider.Ready(Kernels kernels, String caution) ->
          new Candidate(id, true, kernels.description(), caution);
      case KernelProvider.Missing(String reason) -> new Candidate(id, false, reason, "");
    };
  }

  /** Why those that are missing are, in one line. */
  private static String reasons(List<Candidate> asked) {
    List<String> reasons = new ArrayList<>();
    for (Candidate candidate : asked) {
      if (!candidate.ready()) {
        reasons.add(candidate.id() + ": " + candidate.detail());
      }
    }
    return String.join("; ", reasons);
  }

  /** The choice in words. */
  String line() {
    String reasons = reasons(candidates);
    return "kernels: " + candidates.getLast().detail() + (reasons.isEmpty() ? "" : ", not used: " + reasons);
  }

  private void log() {
    LOG.info(line());
    String caution = candidates.getLast().caution();
    if (!caution.isEmpty()) {
      LOG.warn("kernels are slow here: {}", caution);
    }
  }
}
