package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.engine.OperatorWork;
import dev.tacho.metrics.perf.DevicePeaks;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

class RooflineTest {
  private static final DevicePeaks PEAKS = new DevicePeaks(1600e9, 80e9);

  /** Of two workers, 1 ms: a matmul bound by products, a norm bound by memory, and an operator that did not run. */
  private static Roofline roofline(@Nullable DevicePeaks peaks) {
    List<OperatorWork> before =
        List.of(
            new OperatorWork("rms_norm", 10, 1_000, 5_000, 7_000),
            new OperatorWork("matmul", 20, 2_000, 6_000, 8_000),
            new OperatorWork("add", 3, 500, 600, 700));
    List<OperatorWork> after =
        List.of(
            new OperatorWork("rms_norm", 14, 251_000, 2_005_000, 1_007_000),
            new OperatorWork("matmul", 26, 752_000, 6_006_000, 300_008_000),
            new OperatorWork("add", 3, 500, 600, 700));
    return Roofline.between("decode", 4, 2, 2_500_000, peaks, before, after);
  }

  @Test
  void ratesAndSharesAreThoseOfTheDifference() {
    Roofline roofline = roofline(PEAKS);
    assertThat(roofline.operatorSeconds()).isEqualTo(0.0005);
    assertThat(roofline.elapsedSeconds()).isEqualTo(0.0025);
    assertThat(roofline.rows()).extracting(row -> row.work().operator()).containsExactly("matmul", "rms_norm");
    Roofline.Row matmul = roofline.rows().get(0);
    assertThat(matmul.work()).isEqualTo(new OperatorWork("matmul", 6, 750_000, 6_000_000, 300_000_000));
    assertThat(matmul.timeShare()).isEqualTo(0.75);
    assertThat(matmul.gbPerSecond()).as("of both workers").isEqualTo(16);
    assertThat(matmul.gflops()).isEqualTo(800);
    assertThat(matmul.shareOfPeak()).as("of 1600 GFLOP/s, nearer than 16 of 80 GB/s").isEqualTo(0.5, within(1e-12));
    assertThat(matmul.boundByMemory()).isFalse();
    Roofline.Row norm = roofline.rows().get(1);
    assertThat(norm.shareOfPeak()).as("of 80 GB/s, nearer than 8 of 1600 GFLOP/s").isEqualTo(0.2, within(1e-12));
    assertThat(norm.boundByMemory()).isTrue();
  }

  @Test
  void theTableSaysPeaksAndPercents() {
    assertThat(RooflineText.table(roofline(PEAKS)).lines())
        .containsExactly(
            "decode of 4: 0.003 s, 0.001 s of them in operators; peaks 80.0 GB/s, 1600 GFLOP/s",
            "operator               calls    time      GB/s   GFLOP/s   of peak",
            "matmul                     6   75.0%     16.00    800.00     50.0%",
            "rms_norm                   4   25.0%     16.00      8.00     20.0%");
  }

  @Test
  void jsonSaysThePeaksThatTheShareIsOf() throws Exception {
    JsonNode line = new ObjectMapper().readTree(RooflineText.json(roofline(PEAKS)).getFirst());
    assertThat(line.get("peak_gb_per_second").doubleValue()).isEqualTo(80);
    assertThat(line.get("peak_gflops").doubleValue()).isEqualTo(1600);
    assertThat(line.get("share_of_peak").doubleValue()).isEqualTo(0.5, within(1e-12));
  }

  @Test
  void withoutPeaksThereIsNoShare() throws Exception {
    Roofline unknown = roofline(null);
    assertThat(unknown.rows().getFirst().shareOfPeak()).isNaN();
    assertThat(RooflineText.table(unknown)).contains("peaks unknown").contains("800.00         -");
    JsonNode line = new ObjectMapper().readTree(RooflineText.json(unknown).getFirst());
    assertThat(line.get("share_of_peak").isNull()).isTrue();
    assertThat(line.get("peak_gb_per_second").isNull()).isTrue();
    assertThat(line.get("gb_per_second").doubleValue()).isEqualTo(16);
  }

  @Test
  void anOperatorWithoutTimeHasNoRate() {
    List<OperatorWork> before = List.of(new OperatorWork("rope", 0, 0, 0, 0));
    List<OperatorWork> after = List.of(new OperatorWork("rope", 1, 0, 10, 20));
    Roofline.Row row = Roofline.between("prefill", 1, 2, 2_000_000, PEAKS, before, after).rows().getFirst();
    assertThat(row.gflops()).isZero();
    assertThat(row.gbPerSecond()).isZero();
    assertThat(row.timeShare()).isZero();
    assertThat(row.shareOfPeak()).isNaN();
  }

  @Test
  void barsAreAsLongAsTheShareAndTheLongestAboveTheLimitFits() throws Exception {
    List<OperatorWork> none = List.of(new OperatorWork("add", 0, 0, 0, 0));
    List<OperatorWork> cached = List.of(new OperatorWork("add", 1, 1_000, 160_000, 10));
    Roofline above = Roofline.between("prefill", 1, 1, 2_000_000, PEAKS, none, cached);
    String svg = RooflineText.svg("a < b & c", List.of(roofline(PEAKS), above));
    Document document =
        DocumentBuilderFactory.newInstance()
            .newDocumentBuilder()
            .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)));
    assertThat(document.getElementsByTagName("text").item(0).getTextContent()).isEqualTo("a < b & c");
    // The background, two of the legend, then the bars: 50 % and 20 % of the limit at half the width, and 200 %.
    List<Double> widths =
        List.of(3, 4, 5).stream()
            .map(i -> (Element) document.getElementsByTagName("rect").item(i))
            .map(bar -> Double.parseDouble(bar.getAttribute("width")))
            .toList();
    assertThat(widths).containsExactly(120.0, 48.0, 480.0);
  }
}
