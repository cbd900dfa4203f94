/** The Prometheus families and their text. The only package that uses the Prometheus client library. */
@NullMarked
package dev.tacho.metrics.prometheus;

import org.jspecify.annotations.NullMarked;
