/** The OpenAI-compatible HTTP server and the tacho command line. */
@NullMarked
package dev.tacho.server;

import org.jspecify.annotations.NullMarked;
