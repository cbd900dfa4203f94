package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The Java in the documents compiles, each piece within a method that has an engine, a model's file and a server. */
class DocumentationTest {
  private static final Pattern SNIPPET = Pattern.compile("(?ms)^```java\n(.*?)^```$");

  private static final String WITH_ENGINE = "void run(Engine engine, Path file, HttpServer server) throws Exception {";
  private static final String ALONE = "void run(Path file) throws Exception {";

  @TempDir Path classes;

  @ParameterizedTest
  @ValueSource(strings = {"README.md", "docs/embedding.md", "docs/metrics-sdk.md"})
  void javaInTheDocumentsCompiles(String document) throws IOException {
    String text = Files.readString(BundledModel.ROOT.resolve(document));
    List<String> snippets = SNIPPET.matcher(text).results().map((MatchResult found) -> found.group(1)).toList();
    assertThat(snippets).as("%s has Java in it", document).isNotEmpty();
    for (String snippet : snippets) {
      boolean opensOne = snippet.contains("Engine engine = ");
      assertThat(faults(inClass(opensOne ? ALONE : WITH_ENGINE, snippet)))
          .as("of this piece of %s:\n%s", document, snippet)
          .isEmpty();
    }
  }

  private static String inClass(String method, String snippet) {
    return """
        import com.sun.net.httpserver.HttpServer;
        import dev.tacho.engine.*;
        import dev.tacho.metrics.*;
        import dev.tacho.metrics.event.*;
        import dev.tacho.metrics.logger.*;
        import dev.tacho.metrics.page.*;
        import dev.tacho.metrics.prometheus.*;
        import java.nio.file.Path;
        import java.util.List;

        class Snippet {
          %s
            %s
          }
        }
        """
        .formatted(method, snippet);
  }

  private String faults(String source) {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    JavaFileObject file =
        new SimpleJavaFileObject(URI.create("string:///Snippet.java"), JavaFileObject.Kind.SOURCE) {
          @Override
          public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return source;
          }
        };
    StringWriter faults = new StringWriter();
    List<String> options = List.of("-d", classes.toString(), "-proc:none", "-nowarn");
    boolean compiles = compiler.getTask(faults, null, null, options, null, List.of(file)).call();
    return compiles ? "" : faults.toString();
  }
}
