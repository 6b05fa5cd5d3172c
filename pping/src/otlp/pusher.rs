//! The loop of an exporter: when metrics are taken, and when they are sent.

use std::time::Duration;

use hyper::body::Bytes;
use opentelemetry_proto::tonic::resource::v1::Resource;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::{
    sync::mpsc::UnboundedReceiver,
    task::JoinSet,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout_at},
};

use super::{
    message,
    queue::Queue,
    receiver::{Accepted, Failure, Receiver},
};
use crate::{
    config::Otlp,
    metrics::{Dropped, Metrics, Pushes},
};

/// How long the last push may take, when pping stops.
pub(super) const FINAL_PUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The first and the longest pause after a failure. Each is twice the one before, less up to half of it at random.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// The longest wait that a receiver may ask for.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// A command for an exporter.
#[derive(Debug)]
pub(super) enum Command {
    Reload(Otlp, Receiver),
    Stop,
}

/// Takes metrics, and sends them one request at a time.
pub(super) struct Pusher {
    settings: Otlp,
    receiver: Receiver,
    metrics: Metrics,
    resource: Resource,
    queue: Queue,
    /// What is not on pages yet.
    counts: Pushes,
    /// The number of requests dropped so far.
    dropped: u64,
    /// The number of failed attempts since the last success, and when the next attempt may begin.
    failures: u32,
    next: Instant,
    /// When the receiver began to fail, and the number of requests dropped until then.
    failing: Option<(Instant, u64)>,
    is_rejection_logged: bool,
}

type Outcome = Result<Accepted, Failure>;

impl Pusher {
    /// Creates a pusher.
    pub(super) fn new(settings: &Otlp, receiver: Receiver, metrics: Metrics) -> Self {
        Self {
            settings: settings.clone(),
            receiver,
            metrics,
            resource: message::resource(instance()),
            queue: Queue::default(),
            counts: Pushes::default(),
            dropped: 0,
            failures: 0,
            next: Instant::now(),
            failing: None,
            is_rejection_logged: false,
        }
    }

    /// Pushes until [`Command::Stop`].
    pub(super) async fn run(mut self, mut inbox: UnboundedReceiver<Command>) {
        let mut ticks = ticks(&self.settings);
        // The request that is being sent.
        let (mut attempt, mut sending) = (JoinSet::<Outcome>::new(), Bytes::new());
        loop {
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(Command::Reload(settings, receiver)) => {
                        if settings.interval != self.settings.interval {
                            ticks = self::ticks(&settings);
                        }
                        // The new receiver does not wait for the old one.
                        if self.reload(settings, receiver) && !attempt.is_empty() {
                            attempt = JoinSet::new();
                            let request = std::mem::take(&mut sending);
                            self.drop_requests(Dropped::QueueFull, |queue| queue.put_back(request));
                        }
                    }
                    Some(Command::Stop) | None => break,
                },
                _ = ticks.tick() => self.take(),
                () = sleep_until(self.next), if attempt.is_empty() && self.queue.len() > 0 => {
                    if let Some(request) = self.queue.pop() {
                        sending = request.clone();
                        let receiver = self.receiver.clone();
                        attempt.spawn(async move { receiver.send(request).await });
                    }
                }
                Some(outcome) = attempt.join_next() => {
                    // A task that panicked has no known outcome.
                    if let Ok(outcome) = outcome {
                        self.handle_outcome(std::mem::take(&mut sending), outcome);
                    }
                }
            }
        }
        self.finish(attempt, sending).await;
    }

    /// Takes the present metrics, and queues requests with them.
    fn take(&mut self) {
        let export = self.metrics.export(self.settings.temporality);
        for request in message::requests(export, &self.resource) {
            self.drop_requests(Dropped::QueueFull, |queue| queue.push(request));
        }
        self.publish();
    }

    /// Adds what was counted to pages.
    fn publish(&mut self) {
        self.metrics.add_push_counts(std::mem::take(&mut self.counts));
    }

    /// Changes the settings. Queued requests go to the new receiver. Returns whether it has another URL: then nothing is known
    /// of it yet.
    fn reload(&mut self, settings: Otlp, receiver: Receiver) -> bool {
        let is_another = receiver.endpoint() != self.receiver.endpoint();
        if is_another {
            (self.failing, self.is_rejection_logged) = (None, false);
        }
        (self.settings, self.receiver) = (settings, receiver);
        // A failing receiver may be the reason for the reload.
        (self.failures, self.next) = (0, Instant::now());
        is_another
    }

    /// Counts the outcome of a request. Warns once when failures begin, and once when they end.
    fn handle_outcome(&mut self, request: Bytes, outcome: Outcome) {
        match outcome {
            Ok(accepted) => self.accept(&accepted),
            Err(failure) => {
                self.counts.failed[failure.kind as usize] += 1;
                let url = self.receiver.endpoint();
                if self.failing.is_none() {
                    let remedy = if failure.may_retry { "trying again" } else { "those metrics are dropped" };
                    tracing::warn!(
                        "--otlp {url}: {}; {remedy}; further failures are only counted until it accepts \
                         metrics again",
                        failure.reason
                    );
                    self.failing = Some((Instant::now(), self.dropped));
                } else {
                    tracing::debug!("--otlp {url}: {}", failure.reason);
                }
                if failure.may_retry {
                    self.drop_requests(Dropped::QueueFull, |queue| queue.put_back(request));
                    self.next = Instant::now() + pause(self.failures, failure.retry_after);
                    self.failures += 1;
                } else {
                    self.drop_requests(Dropped::Refused, |_| 1);
                }
            }
        }
        self.publish();
    }

    fn accept(&mut self, Accepted { rejected, message }: &Accepted) {
        self.counts.accepted += 1;
        self.counts.rejected_points = self.counts.rejected_points.saturating_add(*rejected);
        self.failures = 0;
        let url = self.receiver.endpoint();
        if let Some((since, dropped)) = self.failing.take() {
            tracing::warn!(
                "--otlp {url}: it accepts metrics again, after {} s; {} requests were dropped meanwhile",
                since.elapsed().as_secs(),
                self.dropped - dropped
            );
        }
        if (*rejected > 0 || !message.is_empty()) && !self.is_rejection_logged {
            self.is_rejection_logged = true;
            tracing::warn!(
                "--otlp {url}: it accepted a request, but rejected {rejected} of its data points ({message}); \
                 pping_otlp_points_rejected_total counts them"
            );
        }
    }

    /// Counts the requests that an operation drops, and returns their number.
    fn drop_requests(&mut self, why: Dropped, operation: impl FnOnce(&mut Queue) -> u64) -> u64 {
        let dropped = operation(&mut self.queue);
        self.counts.dropped[why as usize] += dropped;
        self.dropped += dropped;
        dropped
    }

    /// Sends the remaining requests, as far as the receiver accepts them before the deadline.
    async fn finish(mut self, mut attempt: JoinSet<Outcome>, sending: Bytes) {
        let deadline = Instant::now() + FINAL_PUSH_TIMEOUT;
        self.take();
        let (mut is_fine, mut lost) = (true, 0);
        match timeout_at(deadline, attempt.join_next()).await {
            Ok(Some(Ok(outcome))) => {
                is_fine = outcome.is_ok();
                self.handle_outcome(sending, outcome);
            }
            Ok(None) => {}
            Ok(Some(Err(_))) | Err(_) => {
                is_fine = false;
                lost += self.drop_requests(Dropped::Stopped, |_| 1);
            }
        }
        while is_fine && let Some(request) = self.queue.pop() {
            let outcome = timeout_at(deadline, self.receiver.send(request.clone())).await;
            is_fine = matches!(outcome, Ok(Ok(_)));
            match outcome {
                Ok(outcome) => self.handle_outcome(request, outcome),
                Err(_) => lost += self.drop_requests(Dropped::Stopped, |_| 1),
            }
        }
        lost += self.drop_requests(Dropped::Stopped, |queue| queue.len() as u64);
        self.publish();
        if lost > 0 {
            let url = self.receiver.endpoint();
            tracing::warn!("--otlp {url}: {lost} requests with the last metrics were not accepted in time");
        }
    }
}

fn ticks(settings: &Otlp) -> Interval {
    let mut ticks = interval_at(Instant::now() + settings.interval, settings.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Returns the pause after this many failures and one more.
fn pause(failures: u32, retry_after: Option<Duration>) -> Duration {
    let (first, longest) = PAUSES;
    let pause = first.saturating_mul(1 << failures.min(16)).min(longest);
    let [chance, ..] = random();
    let pause = pause.mul_f64(1.0 - f64::from(chance) / f64::from(u8::MAX) / 2.0);
    pause.max(retry_after.unwrap_or_default().min(LONGEST_WAIT))
}

/// Returns a random UUID (RFC 9562, version 4), a new one for each run, as `service.instance.id` requires.
fn instance() -> String {
    let mut bytes = random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let number = u128::from_be_bytes(bytes);
    let part = |from: u32, bits: u32| (number >> (128 - from - bits)) & ((1 << bits) - 1);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        part(0, 32),
        part(32, 16),
        part(48, 16),
        part(64, 16),
        part(80, 48)
    )
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // This fails if the kernel has no random numbers. Then pauses are the longest, which does no harm.
    SystemRandom::new().fill(&mut bytes).ok();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_minute_and_differ() {
        let pauses: Vec<Duration> = (0..1000).map(|failures| pause(failures, None)).collect();
        for (failures, seconds) in [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (900, 60)] {
            let most = Duration::from_secs(seconds);
            assert!((most / 2..=most).contains(&pauses[failures]), "{:?}", pauses[failures]);
        }
        assert!(pauses[10..].windows(2).any(|pair| pair[0] != pair[1]), "all exporters would come at once");
        assert_eq!(pause(0, Some(Duration::from_secs(90))), Duration::from_secs(90));
        assert_eq!(pause(0, Some(Duration::from_hours(9))), LONGEST_WAIT);
    }

    #[test]
    fn each_instance_has_a_uuid() {
        let (one, other) = (instance(), instance());
        assert_ne!(one, other);
        let parts: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&one[14..15], "4");
        assert!(
            "89ab".contains(&one[19..20]) && one.replace('-', "").chars().all(|it| it.is_ascii_hexdigit())
        );
    }
}
