/** The KV cache: layout, block pool, block tables. Internal. */
@NullMarked
package dev.tacho.engine.kv;

import org.jspecify.annotations.NullMarked;
