package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.ResidencyStats;
import dev.tacho.metrics.stats.Samples;
import dev.tacho.metrics.stats.SchedulerStats;
import dev.tacho.metrics.stats.SpeculationStats;
import dev.tacho.metrics.stats.TransferStats;
import org.jspecify.annotations.Nullable;

/**
 * The cells of families that only some engines have, found once; what belongs to the others is passed over. Used by the
 * page's writer.
 */
final class FeatureCells {
  private static final int NONE = -1;

  private final MetricsPage page;
  private final int kvFetches;
  private final int corrupted;
  private final int watermarks;
  private final int drafts;
  private final int draftTokens;
  private final int acceptedTokens;
  private final int acceptedByPosition;
  private final int positions;
  private final int failedTransfers;
  private final int failedNotifications;
  private final int expiredRequests;
  private final int lateNotifications;
  private final @Nullable PageHistogram transferTime;
  private final @Nullable PageHistogram postTime;
  private final @Nullable PageHistogram transferBytes;
  private final @Nullable PageHistogram transferDescriptors;
  private final @Nullable PageHistogram blockLifetime;
  private final @Nullable PageHistogram blockIdle;
  private final @Nullable PageHistogram blockReuseGap;
  private final OffloadCells offload;

  FeatureCells(MetricsPage page, PageLayout layout) {
    this.page = page;
    boolean diffusion = layout.has(FeatureFamilies.DENOISING_STEPS);
    kvFetches = cell(layout, MetricCatalog.KV_FETCH_BY_STAGE);
    corrupted = cell(layout, MetricCatalog.CORRUPTED);
    watermarks = cell(layout, MetricCatalog.WATERMARKS);
    drafts = cell(layout, diffusion ? FeatureFamilies.DENOISING_STEPS : FeatureFamilies.DRAFTS);
    draftTokens = cell(layout, diffusion ? FeatureFamilies.CANVAS_POSITIONS : FeatureFamilies.DRAFT_TOKENS);
    acceptedTokens = cell(layout, diffusion ? FeatureFamilies.COMMITTED_TOKENS : FeatureFamilies.ACCEPTED_TOKENS);
    acceptedByPosition = cell(layout, FeatureFamilies.ACCEPTED_BY_POSITION);
    positions = acceptedByPosition == NONE ? 0 : layout.children(FeatureFamilies.ACCEPTED_BY_POSITION);
    failedTransfers = cell(layout, FeatureFamilies.FAILED_TRANSFERS);
    failedNotifications = cell(layout, FeatureFamilies.FAILED_NOTIFICATIONS);
    expiredRequests = cell(layout, FeatureFamilies.EXPIRED_REQUESTS);
    lateNotifications = cell(layout, FeatureFamilies.LATE_NOTIFICATIONS);
    transferTime = histogram(layout, FeatureFamilies.TRANSFER_TIME);
    postTime = histogram(layout, FeatureFamilies.POST_TIME);
    transferBytes = histogram(layout, FeatureFamilies.TRANSFER_BYTES);
    transferDescriptors = histogram(layout, FeatureFamilies.TRANSFER_DESCRIPTORS);
    blockLifetime = histogram(layout, MetricCatalog.BLOCK_LIFETIME);
    blockIdle = histogram(layout, MetricCatalog.BLOCK_IDLE);
    blockReuseGap = histogram(layout, MetricCatalog.BLOCK_REUSE_GAP);
    offload = new OffloadCells(page, layout);
  }

  void scheduler(SchedulerStats stats) {
    if (kvFetches != NONE) {
      page.set(kvFetches, stats.fetchesToStart());
      page.set(kvFetches + 1, stats.fetchesInProgress());
      page.set(kvFetches + 2, stats.fetchesCompleted());
    }
    SpeculationStats speculation = stats.speculation();
    if (speculation.drafts() > 0) {
      add(drafts, speculation.drafts());
      add(draftTokens, speculation.draftTokens());
      add(acceptedTokens, speculation.acceptedTokens());
      for (int i = Math.min(positions, speculation.positions()) - 1; i >= 0; i--) {
        add(acceptedByPosition + i, speculation.acceptedAt(i));
      }
    }
    TransferStats transfers = stats.transfers();
    observe(transferTime, transfers.transferSeconds());
    observe(postTime, transfers.postSeconds());
    observe(transferBytes, transfers.bytes());
    observe(transferDescriptors, transfers.descriptors());
    add(failedTransfers, transfers.failedTransfers());
    add(failedNotifications, transfers.failedNotifications());
    add(expiredRequests, transfers.expiredRequests());
    add(lateNotifications, transfers.lateNotifications());
    offload.scheduler(stats.offload());
    ResidencyStats residency = stats.residency();
    observe(blockLifetime, residency.lifetimes());
    observe(blockIdle, residency.idleTimes());
    observe(blockReuseGap, residency.reuseGaps());
  }

  void iteration(IterationStats stats) {
    add(corrupted, stats.corruptedRequests());
    if (watermarks != NONE) {
      for (int status = 0; status < MetricCatalog.WATERMARKS.values().size(); status++) {
        page.add(watermarks + status, stats.watermarks(status));
      }
    }
  }

  private void add(int cell, long count) {
    if (cell != NONE) {
      page.add(cell, count);
    }
  }

  private static void observe(@Nullable PageHistogram histogram, Samples samples) {
    if (histogram != null) {
      histogram.observe(samples);
    }
  }

  private static int cell(PageLayout layout, MetricFamily family) {
    return layout.has(family) ? layout.cell(family, 0) : NONE;
  }

  private @Nullable PageHistogram histogram(PageLayout layout, MetricFamily family) {
    return layout.has(family) ? new PageHistogram(page, layout, family) : null;
  }
}
