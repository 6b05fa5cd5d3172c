//! The lines above every pane: each interface with its rates and its round-trip times on either side, the cost of
//! pping, and what was lost.

use super::text::{amount, bytes, counted, padded, percent, right, side, time, width};
use crate::foreign_text::sanitized;
use crate::recent::{Cost, Interface, Losses, OwnQueue, ResidenceAnswer, SeriesAnswer, Summary};

/// The longest name of an interface in Linux. Names are aligned up to this width.
const NAME: usize = 15;

/// Returns the lines of each interface, the cost of pping, what was lost, and warnings.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let own = [Some(cost(&summary.cost)), lost(&summary.losses)];
    let warnings = summary.warnings.iter().map(|warning| format!("warning: {}", sanitized(warning)));
    interfaces(summary).into_iter().flatten().chain(own.into_iter().flatten()).chain(warnings).collect()
}

/// Returns the same lines for a screen. Joins the lines of an interface if the screen is wide enough, and returns no
/// more than fit.
pub(super) fn fitting(summary: &Summary, room: (usize, usize)) -> Vec<String> {
    let mut blocks = interfaces(summary);
    let joined: Vec<String> = blocks.iter().map(|block| block.join("")).collect();
    if joined.iter().all(|line| width(line) <= room.0) {
        blocks = joined.into_iter().map(|line| vec![line]).collect();
    }
    let mut own: Vec<String> =
        [Some(cost(&summary.cost)), lost(&summary.losses), warned(summary)].into_iter().flatten().collect();
    let joined = own.join("  ");
    if width(&joined) <= room.0 {
        own = vec![joined];
    }
    let height = room.1.saturating_sub(own.len());
    let all: usize = blocks.iter().map(Vec::len).sum();
    let mut lines = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        // The last line says how many interfaces do not fit.
        if all > height && lines.len() + block.len() >= height {
            lines.push(format!("{} more: see pane 3", counted(blocks.len() - number, "interface")));
            break;
        }
        lines.extend_from_slice(block);
    }
    lines.truncate(height);
    lines.extend(own);
    lines.truncate(room.1);
    lines
}

/// Returns the rates of the last second and the round-trip times of the last minute of each interface, aligned with the
/// others.
fn interfaces(summary: &Summary) -> Vec<Vec<String>> {
    let all = &summary.interfaces;
    let name = all.iter().map(|it| width(&sanitized(&it.interface))).max().unwrap_or(0).min(NAME) + 1;
    let times: Vec<[String; 3]> = all.iter().map(times).collect();
    let widest = [0, 1, 2].map(|side| times.iter().map(|it| width(&it[side])).max().unwrap_or(0));
    let block = |(interface, times): (&Interface, &[String; 3])| {
        let title = padded(&sanitized(&interface.interface), name - 1);
        let title = padded(&format!("{}:", title.trim_end()), name);
        if !interface.is_up {
            return vec![format!("{title} is gone")];
        }
        let mut lines = vec![format!("{title} {}", rates(interface))];
        if times.iter().any(|it| !it.is_empty()) {
            let sides = times.iter().zip(widest).filter(|(_, width)| *width > 0);
            let sides: Vec<String> = sides.map(|(side, width)| padded(side, width)).collect();
            lines.push(format!("  {}", sides.join("  ").trim_end()));
        }
        lines.extend(interface.residence.as_ref().and_then(own_queue).map(|queue| format!("  {queue}")));
        lines
    };
    all.iter().zip(&times).map(block).collect()
}

fn rates(interface: &Interface) -> String {
    let (ingress, egress) = (&interface.rates.ingress, &interface.rates.egress);
    let number = |it: f64| right(&amount(it), 5);
    format!(
        "in {} pkt/s {} bit/s  out {} pkt/s {} bit/s  {} samples/s",
        number(ingress.packets),
        number(ingress.bits),
        number(egress.packets),
        number(egress.bits),
        number(interface.rates.samples),
    )
}

/// Returns how much of the RTT inflation beyond an interface is the queue of this host. If packets wait longer than
/// that inflation, all of it is. Super-packets, which are counted as one, may wait so long.
fn own_queue(residence: &ResidenceAnswer) -> Option<String> {
    let words = match (residence.beyond, residence.queue) {
        (Some(OwnQueue { inflation, queue, share: Some(share) }), _) => format!(
            "{} of the {} inflation beyond ({})",
            time(queue.min(inflation)),
            time(inflation),
            percent(share)
        ),
        (_, Some(queue)) => format!("p50 {} p95 {}", time(queue.p50), time(queue.p95)),
        _ => return None,
    };
    Some(format!("own queue: {words}"))
}

/// Returns the round-trip times beyond an interface, behind it, and of both sides together; or those inside and outside of the
/// network, if its sides are told apart.
fn times(interface: &Interface) -> [String; 3] {
    let has_sides = interface.series.iter().any(|it| it.side.is_some());
    let of_network = ["inside", "outside", ""];
    let sides = if has_sides { of_network } else { ["beyond", "behind", "both"] };
    sides.map(|name| {
        let series = if interface.is_up { busiest_series(&interface.series, name) } else { None };
        let rtt = series.and_then(|it| Some((it, it.rtt?)));
        rtt.map_or(String::new(), |(series, rtt)| {
            let (p50, p95) = (time(rtt.p50), time(rtt.p95));
            format!("{name} p50 {p50} p95 {p95} {}", sanitized(&series.method))
        })
    })
}

/// Returns the series of a side with the most samples. Percentiles of several series cannot be combined.
fn busiest_series<'a>(series: &'a [SeriesAnswer], name: &str) -> Option<&'a SeriesAnswer> {
    let is_there = |it: &&SeriesAnswer| side(it.matched.as_deref(), it.side.as_deref()) == name;
    let with_samples = series.iter().filter(is_there).filter(|it| it.rtt.is_some());
    with_samples.max_by_key(|it| it.rtt.map_or(0, |rtt| rtt.count))
}

/// Returns the cost of pping, as shares of a core and in memory.
fn cost(cost: &Cost) -> String {
    let programs = cost.programs.map_or(String::new(), |share| format!(", programs {}", percent(share)));
    format!("pping: {} of a core{programs}, {}", percent(cost.cpu), bytes(cost.memory))
}

/// Returns where to read what is wrong with the place of measurement.
fn warned(summary: &Summary) -> Option<String> {
    let count = summary.warnings.len();
    (count > 0).then(|| format!("{}: see pane 4", counted(count, "warning")))
}

/// Returns what was lost since the start, in words.
fn lost(losses: &Losses) -> Option<String> {
    let all = [
        (losses.recordings_skipped, "packet", "not recorded"),
        (losses.unaggregated, "sample", "in no histogram"),
        (losses.events_lost, "record", "lost"),
    ];
    let some: Vec<String> = all
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, of, what)| format!("{} {what}", counted(count as usize, of)))
        .collect();
    (!some.is_empty()).then(|| format!("lost: {}", some.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        recent::TimesAnswer,
        top::tests::{answers, series},
    };

    #[test]
    fn the_method_with_the_most_samples_stands_for_a_side() {
        let mut summary = answers(&[]).summary;
        let mut dns = series(80_000_000);
        dns.method = "dns".into();
        dns.rtt.as_mut().unwrap().count = 9000;
        let mut behind = series(2_000_000);
        behind.matched = Some("egress".into());
        summary.interfaces[0].series.extend([dns, behind]);
        let lines = lines(&summary);
        let words: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "beyond p50 40.0 ms p95 80.0 ms dns behind p50 1.00 ms p95 2.00 ms tcp-ts"
        );
    }

    #[test]
    fn the_own_queue_is_shown_as_part_of_the_inflation_beyond() {
        let mut summary = answers(&[]).summary;
        let mut line = |beyond, queue| {
            let residence = ResidenceAnswer { queue, beyond, ..ResidenceAnswer::default() };
            summary.interfaces[0].residence = Some(residence);
            lines(&summary)[2].clone()
        };
        let own = |share| OwnQueue { inflation: 14_400_000, queue: 12_100_000, share };
        assert_eq!(
            line(Some(own(Some(0.84))), None),
            "  own queue: 12.1 ms of the 14.4 ms inflation beyond (84.0 %)"
        );
        let longer = OwnQueue { inflation: 5_470_000, queue: 9_700_000, share: Some(1.0) };
        assert_eq!(
            line(Some(longer), None),
            "  own queue: 5.47 ms of the 5.47 ms inflation beyond (100.0 %)"
        );
        // The longest one fits 80 columns.
        let longest = OwnQueue { inflation: 999_900_000, queue: 999_900_000, share: Some(1.0) };
        assert!(width(&line(Some(longest), None)) <= 80);
        let queue = TimesAnswer { count: 5, mean: 0, p50: 3_000_000, p95: 11_000_000, p99: 0 };
        assert_eq!(line(Some(own(None)), Some(queue)), "  own queue: p50 3.00 ms p95 11.0 ms");
        assert!(line(None, None).starts_with("pping: "));
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_before_its_colon() {
        let mut summary = answers(&[]).summary;
        summary.interfaces[0].interface = "capture-of-the-uplink.pcapng".into();
        assert!(lines(&summary)[0].starts_with("capture-of-the-: in "), "{:?}", lines(&summary));
    }

    #[test]
    fn warnings_are_pointed_to_on_a_screen_and_quoted_elsewhere() {
        let mut summary = answers(&[]).summary;
        assert!(!fitting(&summary, (80, 9)).join("\n").contains("warning"));
        summary.warnings = vec!["tap0: the other direction\u{1b} was not seen".to_owned()];
        let shown = fitting(&summary, (80, 9));
        assert!(shown.last().is_some_and(|line| line.ends_with("1 warning: see pane 4")), "{shown:#?}");
        let said = lines(&summary).pop().unwrap();
        assert!(said.starts_with("warning: tap0: the other") && !said.contains('\u{1b}'), "{said:?}");
    }

    #[test]
    fn header_fits_and_counts_omitted_interfaces() {
        let mut summary = answers(&[]).summary;
        for _ in 0..3 {
            summary.interfaces.extend(answers(&[]).summary.interfaces);
        }
        for height in 0..12 {
            let lines = fitting(&summary, (80, height));
            assert!(lines.len() <= height, "{height}: {lines:#?}");
        }
        let lines = fitting(&summary, (80, 6));
        assert!(
            lines[4].starts_with("2 interfaces more")
                && lines[5].starts_with("pping: 0.0 % of a core, 0 MiB  lost: 5 records"),
            "{lines:#?}"
        );
        assert_eq!(fitting(&summary, (80, 9)).len(), 9);
        assert_eq!(fitting(&summary, (200, 9)).len(), 5, "an interface is a line where that is wide enough");
    }
}
