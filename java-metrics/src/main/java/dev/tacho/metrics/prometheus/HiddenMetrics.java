package dev.tacho.metrics.prometheus;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Whether families that a release has deprecated are shown: only to who names the release before the current one, and
 * in builds without a release always. No family of {@value MetricCatalog#FOLLOWS} is hidden at present.
 */
public final class HiddenMetrics {
  private static final Pattern VERSION = Pattern.compile("v?\\d+(\\.\\d+)*((a|b|rc|\\.dev|\\.post)\\d*)?");

  private static final int MINOR = Integer.parseInt(MetricCatalog.FOLLOWS.split("\\.", -1)[1]);

  private HiddenMetrics() {}

  /**
   * Checks the option show-hidden-metrics-for-version.
   *
   * @throws IllegalArgumentException if it is no version
   */
  public static String check(String version) {
    if (!VERSION.matcher(version).matches()) {
      throw new IllegalArgumentException("showHiddenMetricsForVersion \"" + version
          + "\": must be a version such as 0.32");
    }
    return version;
  }

  /**
   * True if a family is shown: if it is not deprecated, or if who asks names the right version.
   *
   * @param family the family
   * @param version what the operator named, null if nothing
   */
  static boolean isShown(MetricFamily family, @Nullable String version) {
    return family.deprecatedIn() == null || (version != null && areShown(0, MINOR, version));
  }

  /**
   * True if that version's hidden families are shown.
   *
   * @param major of the current release
   * @param minor of the current release; a build that is none has 0 and 0
   * @param version what the operator named
   */
  public static boolean areShown(int major, int minor, String version) {
    return (major == 0 && minor == 0) || version.equals(major + "." + (minor - 1));
  }
}
