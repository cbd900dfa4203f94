/** Tacho's metrics in a registry of the Prometheus client library for Java, 1.x (client_java). */
@NullMarked
package dev.tacho.integrations.clientjava;

import org.jspecify.annotations.NullMarked;
