package dev.tacho.engine.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.KernelProvider.Found;
import dev.tacho.engine.kernel.KernelProvider.Missing;
import dev.tacho.engine.kernel.KernelProvider.Ready;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The choice of kernels by word, and what it says. */
class KernelSelectionTest {
  private record Fixed(String id, Found found) implements KernelProvider {
    @Override
    public Found find() {
      return found;
    }
  }

  private record Unasked(String id) implements KernelProvider {
    @Override
    public Found find() {
      throw new AssertionError(id + " was asked");
    }
  }

  private static final KernelProvider NO_CUDA = new Fixed("cuda", new Missing("no device"));
  private static final KernelProvider NO_NATIVE = new Fixed("native", new Missing("/x/libtacho.so: no such file"));
  private static final KernelProvider READY = new Fixed("reference", new Ready(new ReferenceKernels()));

  @Test
  void autoTakesTheFirstThatIsReadyAndAsksNoFurther() {
    KernelSelection selection =
        KernelSelection.select("auto", List.of(NO_CUDA, NO_NATIVE, READY, new Unasked("scalar")));
    assertThat(selection.kernels()).isInstanceOf(ReferenceKernels.class);
    assertThat(selection.line())
        .isEqualTo("kernels: reference, not used: cuda: no device; native: /x/libtacho.so: no such file");
    assertThat(selection.candidates())
        .extracting(KernelSelection.Candidate::id, KernelSelection.Candidate::ready)
        .containsExactly(
            tuple("cuda", false),
            tuple("native", false),
            tuple("reference", true));
  }

  @Test
  void aNamedOneIsTakenWithoutAskingTheOthers() {
    KernelSelection selection =
        KernelSelection.select("reference", List.of(new Unasked("cuda"), READY, new Unasked("scalar")));
    assertThat(selection.line()).isEqualTo("kernels: reference");
  }

  @Test
  void aNamedOneThatIsMissingIsAnErrorWithTheReason() {
    assertThatThrownBy(() -> KernelSelection.select("native", List.of(NO_NATIVE, READY)))
        .isInstanceOf(UnsupportedException.class)
        .hasMessage("kernels=native is not supported: native: /x/libtacho.so: no such file");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "Native", "gpu", "auto "})
  void anUnknownWordIsAnErrorThatNamesTheKnownOnes(String word) {
    assertThatThrownBy(() -> KernelSelection.select(word))
        .isInstanceOf(UnsupportedException.class)
        .hasMessage("kernels=" + word + " is not supported: it must be one of auto, cuda, native, vector, scalar");
  }

  @Test
  void userCase22ASlowChoiceIsCautioned() {
    KernelSelection selection = KernelSelection.select("scalar");
    assertThat(selection.candidates().getLast().caution()).contains("many times slower");
    assertThat(KernelSelection.select("native").candidates().getLast().caution()).isEmpty();
  }

  @Test
  void userCase24WithoutCudaTheCpuIsTakenAndTheLineSaysWhy() {
    KernelSelection selection = KernelSelection.select("auto");
    assertThat(selection.kernels().id()).isEqualTo("native");
    assertThat(selection.line())
        .startsWith("kernels: native ")
        .contains("not used: cuda: this build has no CUDA kernels (libtacho_cuda.so)")
        .doesNotContain("\n");
  }

  @Test
  void userCase24ForcedCudaWithoutADeviceIsAnErrorWithTheReason() {
    assertThatThrownBy(() -> KernelSelection.select("cuda"))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageStartingWith("kernels=cuda is not supported: cuda: this build has no CUDA kernels");
  }

  @Test
  void theSurveyNamesEveryProviderInOrder() {
    assertThat(KernelSelection.survey())
        .extracting(KernelSelection.Candidate::id)
        .containsExactly("cuda", "native", "vector", "scalar");
  }
}
