package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import dev.tacho.metrics.prometheus.MetricFamily.Question;
import java.util.List;

/** The part of the {@link MetricCatalog} that comes first in the exposition: speculative decoding and KV connectors. */
final class FeatureFamilies {
  private static final FamilyTable TABLE = new FamilyTable();

  static final MetricFamily DRAFTS = TABLE.counter("vllm:spec_decode_num_drafts").gate(Gate.SPECULATION)
      .unit("drafts").asks(Question.SPECULATION).moves(Moment.SNAPSHOT)
      .help("Drafts that the model verified, one for each sequence and step.");
  static final MetricFamily DRAFT_TOKENS = TABLE.counter("vllm:spec_decode_num_draft_tokens").gate(Gate.SPECULATION)
      .unit("tokens").asks(Question.SPECULATION).moves(Moment.SNAPSHOT)
      .help("Tokens of those drafts.");
  static final MetricFamily ACCEPTED_TOKENS = TABLE.counter("vllm:spec_decode_num_accepted_tokens")
      .gate(Gate.SPECULATION).unit("tokens").asks(Question.SPECULATION).moves(Moment.SNAPSHOT)
      .help("Draft tokens that the model accepted.");
  static final MetricFamily ACCEPTED_BY_POSITION = TABLE.counter("vllm:spec_decode_num_accepted_tokens_per_pos")
      .countedByEngine("position").gate(Gate.SPECULATION).unit("tokens").asks(Question.SPECULATION)
      .moves(Moment.SNAPSHOT)
      .help("Draft tokens that the model accepted, by their position in the draft.");
  static final MetricFamily DENOISING_STEPS = TABLE.counter("vllm:diffusion_num_denoising_steps")
      .gate(Gate.DIFFUSION).unit("steps").asks(Question.SPECULATION).moves(Moment.SNAPSHOT)
      .help("Denoising steps of a diffusion model, one for each sequence and step.");
  static final MetricFamily CANVAS_POSITIONS = TABLE.counter("vllm:diffusion_num_canvas_positions")
      .gate(Gate.DIFFUSION).unit("positions").asks(Question.SPECULATION).moves(Moment.SNAPSHOT)
      .help("Canvas positions that those steps evaluated.");
  static final MetricFamily COMMITTED_TOKENS = TABLE.counter("vllm:diffusion_num_committed_tokens")
      .gate(Gate.DIFFUSION).unit("tokens").asks(Question.SPECULATION).moves(Moment.SNAPSHOT)
      .help("Tokens that those steps committed.");
  static final MetricFamily TRANSFER_TIME = TABLE.histogram("vllm:nixl_xfer_time_seconds")
      .buckets(BucketFamily.TRANSFER_TIME).gate(Gate.NIXL).unit("seconds").asks(Question.TRANSFER)
      .moves(Moment.TRANSFER)
      .help("Duration of a KV transfer from another engine.");
  static final MetricFamily POST_TIME = TABLE.histogram("vllm:nixl_post_time_seconds")
      .buckets(BucketFamily.TRANSFER_POST_TIME).gate(Gate.NIXL).unit("seconds").asks(Question.TRANSFER)
      .moves(Moment.TRANSFER)
      .help("Time that it took to post a KV transfer.");
  static final MetricFamily TRANSFER_BYTES = TABLE.histogram("vllm:nixl_bytes_transferred")
      .buckets(BucketFamily.TRANSFER_BYTES).gate(Gate.NIXL).unit("bytes").asks(Question.TRANSFER)
      .moves(Moment.TRANSFER)
      .help("Bytes of a KV transfer.");
  static final MetricFamily TRANSFER_DESCRIPTORS = TABLE.histogram("vllm:nixl_num_descriptors")
      .buckets(BucketFamily.TRANSFER_DESCRIPTORS).gate(Gate.NIXL).unit("descriptors").asks(Question.TRANSFER)
      .moves(Moment.TRANSFER)
      .help("Descriptors of a KV transfer.");
  static final MetricFamily FAILED_TRANSFERS = TABLE.counter("vllm:nixl_num_failed_transfers").gate(Gate.NIXL)
      .unit("events").asks(Question.TRANSFER).moves(Moment.TRANSFER)
      .help("KV transfers, handshakes and notifications that failed.");
  static final MetricFamily FAILED_NOTIFICATIONS = TABLE.counter("vllm:nixl_num_failed_notifications")
      .gate(Gate.NIXL).unit("events").asks(Question.TRANSFER).moves(Moment.TRANSFER)
      .help("Notifications of those alone.");
  static final MetricFamily EXPIRED_REQUESTS = TABLE.counter("vllm:nixl_num_kv_expired_reqs").gate(Gate.NIXL)
      .unit("requests").asks(Question.TRANSFER).moves(Moment.TRANSFER)
      .help("Requests whose keys and values nobody fetched in time.");
  static final MetricFamily LATE_NOTIFICATIONS = TABLE.counter("vllm:nixl_num_notifications_after_expiry")
      .gate(Gate.NIXL).unit("notifications").asks(Question.TRANSFER).moves(Moment.TRANSFER)
      .help("Notifications for requests that had been given up.");

  private FeatureFamilies() {}

  /** The rows, in the order of the exposition. */
  static List<MetricFamily> rows() {
    return TABLE.rows();
  }
}
