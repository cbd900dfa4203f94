package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.perf.DeviceCounters;
import dev.tacho.metrics.perf.DeviceRates;
import dev.tacho.metrics.stats.MemoryArea;

/** The cells of what an engine's device does, found once. Used by the page's writer. */
final class DeviceCells {
  private static final double NANOS = 1e9;

  private final MetricsPage page;
  private final int flops;
  private final int readBytes;
  private final int writeBytes;
  private final int mfu;
  private final int mbu;
  private final int busy;
  private final int bubble;
  private final int ffiCalls;
  private final int memory;
  private final int workerWait;
  private final int workers;

  DeviceCells(MetricsPage page, PageLayout layout) {
    this.page = page;
    flops = layout.cell(OwnFamilies.COUNTED_FLOPS, 0);
    readBytes = layout.cell(OwnFamilies.COUNTED_READ_BYTES, 0);
    writeBytes = layout.cell(OwnFamilies.COUNTED_WRITE_BYTES, 0);
    mfu = layout.cell(OwnFamilies.MFU, 0);
    mbu = layout.cell(OwnFamilies.MBU, 0);
    busy = layout.cell(OwnFamilies.DEVICE_BUSY, 0);
    bubble = layout.cell(OwnFamilies.ENGINE_BUBBLE, 0);
    ffiCalls = layout.cell(OwnFamilies.FFI_CALLS, 0);
    memory = layout.cell(OwnFamilies.MEMORY, 0);
    workers = layout.has(OwnFamilies.WORKER_WAIT) ? layout.children(OwnFamilies.WORKER_WAIT) : 0;
    workerWait = workers > 0 ? layout.cell(OwnFamilies.WORKER_WAIT, 0) : 0;
  }

  void device(DeviceCounters totals, DeviceRates rates) {
    page.set(flops, totals.flops());
    page.set(readBytes, totals.readBytes());
    page.set(writeBytes, totals.writeBytes());
    page.set(ffiCalls, totals.ffiCalls());
    page.set(bubble, totals.bubbleNanos() / NANOS);
    page.set(mfu, rates.mfu());
    page.set(mbu, rates.mbu());
    page.set(busy, rates.busy());
    for (int worker = Math.min(workers, totals.workers()) - 1; worker >= 0; worker--) {
      page.set(workerWait + worker, totals.workerWaitNanos(worker) / NANOS);
    }
  }

  void memory(MemoryArea area, long bytes) {
    page.set(memory + area.ordinal(), bytes);
  }
}
