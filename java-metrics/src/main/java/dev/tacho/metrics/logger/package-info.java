/** Where statistics go: the extension point, its manager and the log line. */
@NullMarked
package dev.tacho.metrics.logger;

import org.jspecify.annotations.NullMarked;
