package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.metrics.perf.DevicePeaks;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** A {@link Roofline} as a table, as lines of JSON, and several as one SVG picture. */
final class RooflineText {
  private static final double GIGA = 1e9;

  private static final int LABEL_WIDTH = 150;
  private static final int PLOT_WIDTH = 480;
  private static final int VALUE_WIDTH = 230;
  private static final int ROW_HEIGHT = 20;
  private static final int BAR_HEIGHT = 14;
  private static final int MARGIN = 16;
  private static final String MEMORY_COLOR = "#3b6ea5";
  private static final String PRODUCTS_COLOR = "#c4782e";

  private RooflineText() {}

  /** The table, without an empty line around it. */
  static String table(Roofline roofline) {
    StringBuilder text = new StringBuilder(title(roofline)).append('\n');
    text.append(
        String.format(
            Locale.ROOT,
            "%-18s %9s %7s %9s %9s %9s%n",
            "operator", "calls", "time", "GB/s", "GFLOP/s", "of peak"));
    for (Roofline.Row row : roofline.rows()) {
      text.append(
          String.format(
              Locale.ROOT, "%-18s %9d %6.1f%% %9.2f %9.2f %9s%n",
              row.work().operator(),
              row.work().calls(),
              100 * row.timeShare(),
              row.gbPerSecond(),
              row.gflops(),
              percent(row.shareOfPeak())));
    }
    return text.toString();
  }

  private static String title(Roofline roofline) {
    return String.format(
        Locale.ROOT,
        "%s of %d: %.3f s, %.3f s of them in operators; %s",
        roofline.test(),
        roofline.batch(),
        roofline.elapsedSeconds(),
        roofline.operatorSeconds(),
        peaks(roofline));
  }

  private static String peaks(Roofline roofline) {
    DevicePeaks peaks = roofline.peaks();
    return peaks == null
        ? "peaks unknown"
        : String.format(
            Locale.ROOT,
            "peaks %.1f GB/s, %.0f GFLOP/s",
            peaks.bytesPerSecond() / GIGA,
            peaks.flopsPerSecond() / GIGA);
  }

  /** One object an operator. */
  static List<String> json(Roofline roofline) {
    return roofline.rows().stream().map(row -> json(roofline, row)).toList();
  }

  private static String json(Roofline roofline, Roofline.Row row) {
    DevicePeaks peaks = roofline.peaks();
    ObjectNode line =
        Json.object()
            .put("operator", row.work().operator())
            .put("phase", roofline.test())
            .put("batch", roofline.batch())
            .put("calls", row.work().calls())
            .put("nanos", row.work().nanos())
            .put("bytes", row.work().bytes())
            .put("flops", row.work().flops())
            .put("gb_per_second", row.gbPerSecond())
            .put("gflops", row.gflops())
            .put("share_of_peak", orNull(row.shareOfPeak()))
            .put("peak_gb_per_second", peaks == null ? null : peaks.bytesPerSecond() / GIGA)
            .put("peak_gflops", peaks == null ? null : peaks.flopsPerSecond() / GIGA);
    return Json.text(line);
  }

  private static @Nullable Double orNull(double value) {
    return Double.isNaN(value) ? null : value;
  }

  private static String percent(double share) {
    return Double.isNaN(share) ? "-" : String.format(Locale.ROOT, "%.1f%%", 100 * share);
  }

  /**
   * A bar for each operator of each test: how much of its limit it reached.
   *
   * @param title of the picture
   */
  static String svg(String title, List<Roofline> rooflines) {
    double most = 1;
    int height = 3 * ROW_HEIGHT + 2 * MARGIN;
    for (Roofline roofline : rooflines) {
      height += (roofline.rows().size() + 2) * ROW_HEIGHT;
      for (Roofline.Row row : roofline.rows()) {
        most = Double.isNaN(row.shareOfPeak()) ? most : Math.max(most, row.shareOfPeak());
      }
    }
    int width = LABEL_WIDTH + PLOT_WIDTH + VALUE_WIDTH + 2 * MARGIN;
    StringBuilder svg = new StringBuilder();
    svg.append(
        String.format(
            Locale.ROOT, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\""
                + " font-family=\"sans-serif\" font-size=\"12\">%n",
            width, height, width, height));
    svg.append(String.format(Locale.ROOT, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>%n", width, height));
    int y = MARGIN + ROW_HEIGHT;
    text(svg, MARGIN, y, "start", "bold", title);
    y += ROW_HEIGHT;
    legend(svg, MARGIN, y, MEMORY_COLOR, "bound by memory");
    legend(svg, MARGIN + LABEL_WIDTH, y, PRODUCTS_COLOR, "bound by matrix products");
    for (Roofline roofline : rooflines) {
      y += 2 * ROW_HEIGHT;
      text(svg, MARGIN, y, "start", "bold", title(roofline));
      int top = y + ROW_HEIGHT / 2;
      for (Roofline.Row row : roofline.rows()) {
        y += ROW_HEIGHT;
        bar(svg, y, row, most);
      }
      double limit = MARGIN + LABEL_WIDTH + PLOT_WIDTH / most;
      svg.append(
          String.format(
              Locale.ROOT,
              "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#333\" stroke-dasharray=\"4 3\"/>%n",
              limit, top, limit, y + ROW_HEIGHT / 2));
    }
    return svg.append("</svg>\n").toString();
  }

  private static void legend(StringBuilder svg, int x, int y, String color, String words) {
    svg.append(
        String.format(
            Locale.ROOT, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/>%n", x, y - 9, color));
    text(svg, x + 14, y, "start", "normal", words);
  }

  private static void bar(StringBuilder svg, int y, Roofline.Row row, double most) {
    int left = MARGIN + LABEL_WIDTH;
    double length = Double.isNaN(row.shareOfPeak()) ? 0 : PLOT_WIDTH * row.shareOfPeak() / most;
    text(svg, left - 6, y + 4, "end", "normal", row.work().operator());
    svg.append(
        String.format(
            Locale.ROOT, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>%n",
            left, y - BAR_HEIGHT / 2, length, BAR_HEIGHT, row.boundByMemory() ? MEMORY_COLOR : PRODUCTS_COLOR));
    String value =
        String.format(
            Locale.ROOT, "%s, %.1f GB/s, %.1f GFLOP/s, %.1f%% of time",
            percent(row.shareOfPeak()), row.gbPerSecond(), row.gflops(), 100 * row.timeShare());
    text(svg, left + (int) Math.round(length) + 6, y + 4, "start", "normal", value);
  }

  private static void text(StringBuilder svg, int x, int y, String anchor, String weight, String words) {
    String escaped = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    svg.append(
        String.format(
            Locale.ROOT, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-weight=\"%s\">%s</text>%n",
            x, y, anchor, weight, escaped));
  }
}
