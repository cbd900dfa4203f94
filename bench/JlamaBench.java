import com.github.tjake.jlama.model.AbstractModel;
import com.github.tjake.jlama.model.ModelSupport;
import com.github.tjake.jlama.safetensors.DType;
import com.github.tjake.jlama.safetensors.SafeTensorSupport;
import com.github.tjake.jlama.tensor.AbstractTensor;
import com.github.tjake.jlama.tensor.KvBufferCache;
import com.github.tjake.jlama.util.PhysicalCoreExecutor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.function.DoubleSupplier;

/**
 * Runs one test of {@code scripts/bench peers} in Jlama, on its Vector API kernels: token ids in, no tokenizer at work.
 * The test runs for three seconds before it counts, so that the JIT compiler has done its work.
 *
 * <p>usage: java -cp JLAMA bench/JlamaBench.java COMMAND, with COMMAND one of
 * <pre>
 *   quantize FOLDER TO                   its own four-bit weights of a model in BF16
 *   prefill FOLDER THREADS TOKENS        prints {"tokens_per_second": 1.0}
 *   decode FOLDER THREADS DEPTH TOKENS   the same, of TOKENS behind a prompt of DEPTH
 * </pre>
 */
final class JlamaBench {
  private static final long WARMING_NANOS = 3_000_000_000L;
  /** Any would do; the vocabularies are larger than this and a context together. */
  private static final int FIRST_ID = 1000;

  private JlamaBench() {}

  public static void main(String[] words) throws IOException {
    Path folder = Path.of(words[1]);
    if (words[0].equals("quantize")) {
      SafeTensorSupport.quantizeModel(folder, DType.Q4, new String[0], new String[0], Optional.of(Path.of(words[2])));
    } else {
      PhysicalCoreExecutor.overrideThreadCount(Integer.parseInt(words[2]));
      AbstractModel model = ModelSupport.loadModel(folder.toFile(), DType.F32, DType.I8);
      int tokens = Integer.parseInt(words[3]);
      DoubleSupplier test = words[0].equals("prefill")
          ? () -> prefill(model, tokens)
          : () -> decode(model, tokens, Integer.parseInt(words[4]));
      long end = System.nanoTime() + WARMING_NANOS;
      do {
        double _ = test.getAsDouble();
      } while (System.nanoTime() - end < 0);
      System.out.printf(Locale.ROOT, "{\"tokens_per_second\": %.3f}%n", test.getAsDouble());
    }
    // Its threads are no daemons.
    System.exit(0);
  }

  private static int[] prompt(int tokens) {
    int[] ids = new int[tokens];
    Arrays.setAll(ids, index -> FIRST_ID + index);
    return ids;
  }

  private static double prefill(AbstractModel model, int tokens) {
    try (KvBufferCache.KvBuffer cache = new KvBufferCache(model).getEphemeralKvBuffer();
        AbstractTensor logits = model.makeDenseTensor(model.getConfig().vocabularySize)) {
      long start = System.nanoTime();
      model.sample(last(model.batchForward(prompt(tokens), 0, cache)), 0, 0, logits);
      return tokens * 1e9 / (System.nanoTime() - start);
    }
  }

  private static AbstractTensor last(AbstractTensor outputs) {
    return outputs.slice(outputs.shape().first() - 1);
  }

  private static double decode(AbstractModel model, int depth, int tokens) {
    try (KvBufferCache.KvBuffer cache = new KvBufferCache(model).getEphemeralKvBuffer();
        AbstractTensor logits = model.makeDenseTensor(model.getConfig().vocabularySize)) {
      int token = model.sample(last(model.batchForward(prompt(depth), 0, cache)), 0, 0, logits);
      long start = System.nanoTime();
      for (int position = depth; position < depth + tokens; position++) {
        try (AbstractTensor output = model.forward(token, position, cache, Optional.empty())) {
          token = model.sample(output, 0, 0, logits);
        }
      }
      return tokens * 1e9 / (System.nanoTime() - start);
    }
  }
}
