package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.perf.WorkEstimate;
import dev.tacho.metrics.stats.CacheSource;
import dev.tacho.metrics.stats.FinishedRequestStats;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.PromptTokenStats;
import dev.tacho.metrics.stats.SchedulerStats;

/** The cells of what every engine records, found once, and what is written into them. Used by the page's writer. */
final class RecordedCells {
  private static final FinishReason[] REASONS = FinishReason.values();
  private static final CacheSource[] SOURCES = CacheSource.values();

  private final MetricsPage page;
  private final FeatureCells features;
  private final int flops;
  private final int readBytes;
  private final int writeBytes;
  private final int running;
  private final int waiting;
  private final int waitingByReason;
  private final int kvCacheUsage;
  private final int prefixQueries;
  private final int prefixHits;
  private final int externalQueries;
  private final int externalHits;
  private final int multiModalQueries;
  private final int multiModalHits;
  private final int preemptions;
  private final int promptTokens;
  private final int promptTokensBySource;
  private final int promptTokensCached;
  private final int cachedBySource;
  private final int generationTokens;
  private final int requestSuccess;
  private final int accepted;
  private final PageHistogram requestPromptTokens;
  private final PageHistogram requestGenerationTokens;
  private final PageHistogram iterationTokens;
  private final PageHistogram maxGenerationTokens;
  private final PageHistogram paramsN;
  private final PageHistogram paramsMaxTokens;
  private final PageHistogram frontend;
  private final PageHistogram firstDelivery;
  private final PageHistogram laterDelivery;
  private final PageHistogram timeToFirstToken;
  private final PageHistogram interTokenLatency;
  private final PageHistogram timePerOutputToken;
  private final PageHistogram endToEnd;
  private final PageHistogram queueTime;
  private final PageHistogram inferenceTime;
  private final PageHistogram prefillTime;
  private final PageHistogram decodeTime;
  private final PageHistogram requestPreemptions;
  private final PageHistogram prefillKvComputed;

  RecordedCells(MetricsPage page, PageLayout layout) {
    this.page = page;
    this.features = new FeatureCells(page, layout);
    flops = layout.cell(MetricCatalog.ESTIMATED_FLOPS, 0);
    readBytes = layout.cell(MetricCatalog.ESTIMATED_READ_BYTES, 0);
    writeBytes = layout.cell(MetricCatalog.ESTIMATED_WRITE_BYTES, 0);
    running = layout.cell(MetricCatalog.RUNNING, 0);
    waiting = layout.cell(MetricCatalog.WAITING, 0);
    waitingByReason = layout.cell(MetricCatalog.WAITING_BY_REASON, 0);
    kvCacheUsage = layout.cell(MetricCatalog.KV_CACHE_USAGE, 0);
    prefixQueries = layout.cell(MetricCatalog.PREFIX_QUERIES, 0);
    prefixHits = layout.cell(MetricCatalog.PREFIX_HITS, 0);
    externalQueries = layout.cell(MetricCatalog.EXTERNAL_PREFIX_QUERIES, 0);
    externalHits = layout.cell(MetricCatalog.EXTERNAL_PREFIX_HITS, 0);
    multiModalQueries = layout.cell(MetricCatalog.MM_QUERIES, 0);
    multiModalHits = layout.cell(MetricCatalog.MM_HITS, 0);
    preemptions = layout.cell(MetricCatalog.PREEMPTIONS, 0);
    promptTokens = layout.cell(MetricCatalog.PROMPT_TOKENS, 0);
    promptTokensBySource = layout.cell(MetricCatalog.PROMPT_TOKENS_BY_SOURCE, 0);
    promptTokensCached = layout.cell(MetricCatalog.PROMPT_TOKENS_CACHED, 0);
    cachedBySource = layout.cell(MetricCatalog.CACHED_BY_SOURCE, 0);
    generationTokens = layout.cell(MetricCatalog.GENERATION_TOKENS, 0);
    requestSuccess = layout.cell(MetricCatalog.REQUEST_SUCCESS, 0);
    accepted = layout.cell(MetricCatalog.REQUESTS_ACCEPTED, 0);
    requestPromptTokens = new PageHistogram(page, layout, MetricCatalog.REQUEST_PROMPT_TOKENS);
    requestGenerationTokens = new PageHistogram(page, layout, MetricCatalog.REQUEST_GENERATION_TOKENS);
    iterationTokens = new PageHistogram(page, layout, MetricCatalog.ITERATION_TOKENS);
    maxGenerationTokens = new PageHistogram(page, layout, MetricCatalog.MAX_GENERATION_TOKENS);
    paramsN = new PageHistogram(page, layout, MetricCatalog.PARAMS_N);
    paramsMaxTokens = new PageHistogram(page, layout, MetricCatalog.PARAMS_MAX_TOKENS);
    frontend = new PageHistogram(page, layout, OwnFamilies.REQUEST_FRONTEND);
    firstDelivery = new PageHistogram(page, layout, OwnFamilies.OUTPUT_DELIVERY, 0);
    laterDelivery = new PageHistogram(page, layout, OwnFamilies.OUTPUT_DELIVERY, 1);
    timeToFirstToken = new PageHistogram(page, layout, MetricCatalog.TIME_TO_FIRST_TOKEN);
    interTokenLatency = new PageHistogram(page, layout, MetricCatalog.INTER_TOKEN_LATENCY);
    timePerOutputToken = new PageHistogram(page, layout, MetricCatalog.TIME_PER_OUTPUT_TOKEN);
    endToEnd = new PageHistogram(page, layout, MetricCatalog.E2E_LATENCY);
    queueTime = new PageHistogram(page, layout, MetricCatalog.QUEUE_TIME);
    inferenceTime = new PageHistogram(page, layout, MetricCatalog.INFERENCE_TIME);
    prefillTime = new PageHistogram(page, layout, MetricCatalog.PREFILL_TIME);
    decodeTime = new PageHistogram(page, layout, MetricCatalog.DECODE_TIME);
    requestPreemptions = new PageHistogram(page, layout, MetricCatalog.REQUEST_PREEMPTIONS);
    prefillKvComputed = new PageHistogram(page, layout, MetricCatalog.PREFILL_KV_COMPUTED);
  }

  void scheduler(SchedulerStats stats) {
    page.set(running, stats.running());
    page.set(waiting, stats.waiting() + stats.deferred());
    page.set(waitingByReason, stats.waiting());
    page.set(waitingByReason + 1, stats.deferred());
    page.set(kvCacheUsage, stats.kvCacheUsage());
    page.add(prefixQueries, stats.prefixCache().queries());
    page.add(prefixHits, stats.prefixCache().hits());
    page.add(cachedBySource, stats.prefixCache().hits());
    page.add(externalQueries, stats.connectorCache().lookups().queries());
    page.add(externalHits, stats.connectorCache().lookups().hits());
    for (CacheSource source : SOURCES) {
      page.add(cachedBySource + source.ordinal(), stats.connectorCache().hits(source));
    }
    features.scheduler(stats);
    WorkEstimate work = stats.work();
    page.add(flops, work.flops());
    page.add(readBytes, work.readBytes());
    page.add(writeBytes, work.writeBytes());
  }

  void iteration(IterationStats stats) {
    page.add(multiModalQueries, stats.multiModalCache().queries());
    page.add(multiModalHits, stats.multiModalCache().hits());
    features.iteration(stats);
    page.add(accepted, stats.accepted());
    page.add(preemptions, stats.preemptions());
    PromptTokenStats prompt = stats.promptTokens();
    page.add(promptTokens, prompt.total());
    page.add(promptTokensBySource, prompt.computed());
    page.add(promptTokensBySource + 1, prompt.localCacheHit());
    page.add(promptTokensBySource + 2, prompt.externalKvTransfer());
    page.add(promptTokensCached, prompt.cached());
    page.add(generationTokens, stats.generationTokens());
    if (stats.outputs() > 0) {
      iterationTokens.observe((double) stats.iterationTokens());
    }
    maxGenerationTokens.observe(stats.maxGenerationTokens());
    paramsN.observe(stats.paramsN());
    frontend.observe(stats.frontendTimes());
    firstDelivery.observe(stats.deliverySeconds(), stats.timesToFirstToken().size());
    laterDelivery.observe(stats.deliverySeconds(), stats.interTokenLatencies().size());
    timeToFirstToken.observe(stats.timesToFirstToken());
    interTokenLatency.observe(stats.interTokenLatencies());
    for (FinishedRequestStats request : stats.finished()) {
      finished(request);
    }
    for (FinishReason reason : REASONS) {
      page.add(requestSuccess + reason.id(), stats.ended(reason));
    }
  }

  private void finished(FinishedRequestStats request) {
    page.add(requestSuccess + request.reason().id(), 1);
    endToEnd.observe(request.endToEndSeconds());
    queueTime.observe(request.queuedSeconds());
    prefillTime.observe(request.prefillSeconds());
    inferenceTime.observe(request.inferenceSeconds());
    decodeTime.observe(request.decodeSeconds());
    requestPreemptions.observe(request.preemptions());
    prefillKvComputed.observe(request.promptTokens() - Math.max(0, request.cachedTokens()));
    requestPromptTokens.observe(request.promptTokens());
    requestGenerationTokens.observe(request.generatedTokens());
    timePerOutputToken.observe(request.secondsPerOutputToken());
    if (request.maxTokens() != 0) {
      paramsMaxTokens.observe(request.maxTokens());
    }
  }
}
