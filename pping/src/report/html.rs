//! The page of a report. It has everything in it: no script, no request, and it can be printed.

use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pping_common::{group::Side, limits::SECOND, parse::Direction};

use super::{
    chart::{self, Line},
    digest::{Figures, Hour, Report, Row, is_clear},
    marks::{marks, zoned},
};
use crate::{
    history::{HOUR, Moment, PACKETS, SECONDS, UNTRACKED, local},
    reasons,
};

const STYLE: &str = include_str!("report.css");

/// Said of a list without groups.
const TOO_FEW: &str = "No group has 100 samples.";

/// Said of comparisons.
const NO_WEEK_BEFORE: &str = "No group has 100 samples in both weeks, so nothing can be compared.";

/// The busiest hours of the day, which are marked.
const BUSIEST: usize = 3;

/// Writes the page of a report.
pub(super) fn page(report: &Report) -> String {
    let title = title(report);
    let (worse, better) = changes(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    (summary(report))
                    (warnings(report))
                    (places(report))
                    (by_hour(report))
                    (busy_hours(report))
                    (quality(report))
                    (groups("worst", "Worst groups", "By the 95th percentile of their worst series, the highest first.", TOO_FEW, &report.worst))
                    (groups("best", "Best groups", "By the 95th percentile of their worst series, the lowest first.", TOO_FEW, &report.best))
                    (groups("worse", "Worse than the week before", "By the rise of the 95th percentile, if it is more than 15 %.", worse, &report.worse))
                    (groups("better", "Better than the week before", "By the fall of the 95th percentile, if it is as clear.", better, &report.better))
                    (unmeasured(report))
                    footer {
                        p {
                            "Written by pping " (report.version) " on " (report.host) ". Percentiles are those of all samples, within 4.4 %, so a \
                             95th percentile that moved by up to 15 % is called the same; times are those of " (zone()) "."
                        }
                    }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn title(report: &Report) -> String {
    let site = report.site.as_ref().map(|site| format!(" of {site}")).unwrap_or_default();
    let (host, from, to) = (&report.host, local(report.from / SECOND), local(report.to / SECOND));
    format!("{host}: latency{site}, {from} to {to}")
}

/// What is said if no group became worse, and if none became better.
fn changes(report: &Report) -> (&'static str, &'static str) {
    if report.compared == 0 {
        return (NO_WEEK_BEFORE, NO_WEEK_BEFORE);
    }
    (
        "No group became clearly worse: no 95th percentile rose by more than 15 %.",
        "No group became clearly better: no 95th percentile fell as clearly.",
    )
}

fn summary(report: &Report) -> Markup {
    let main = &report.places[0];
    let rtt = main.figures.rtt;
    html! {
        p.summary {
            (counted(report.groups as u64, "group")) " had at least 100 samples. Most samples are of " strong { (place(main)) }
            ": half of its " (counted(rtt.count, "round-trip time")) " took at most " strong { (ms(rtt.p50)) } ", 95 % at most "
            strong { (ms(rtt.p95)) }
            @match &main.week_before {
                Some(before) => { ", in the week before " (ms(before.rtt.p50)) " and " (ms(before.rtt.p95)) "." }
                None => { ". Of the week before there is nothing to compare with." }
            }
        }
        (measured_for(report))
        @if let Some(hour) = report.running_hour {
            p.note { "The hour from " (local(hour / SECOND)) " on was not over yet, so its figures are those of its beginning." }
        }
    }
}

/// Says so if pping did not measure all the time.
fn measured_for(report: &Report) -> Markup {
    let (measured, all) = (report.counts.get(SECONDS), (report.to - report.from) / SECOND);
    html! {
        @if measured > 0 && measured * 100 < all * 99 {
            p.warning {
                "pping measured for "
                @if measured < HOUR {
                    (counted(measured.div_ceil(60), "minute"))
                } @else {
                    (format!("{:.1}", measured as f64 / HOUR as f64))
                }
                " of " (all / HOUR) " hours."
            }
        }
    }
}

fn warnings(report: &Report) -> Markup {
    html! { @for reason in &report.damaged { p.warning { (reason) "; it is left out." } } }
}

fn places(report: &Report) -> Markup {
    html! {
        section aria-labelledby="measured" {
            h2 id="measured" { "What was measured" }
            table {
                thead {
                    tr {
                        th scope="col" { "Where, and by what method" }
                        (figure_heads())
                    }
                }
                tbody {
                    @for row in &report.places {
                        tr { th scope="row" { (place(row)) } (figures(row)) }
                    }
                }
            }
            p.note {
                "Beyond an interface is the path to which it leads, and behind it the path on this side of it, through this host."
            }
        }
    }
}

/// A list of groups; `none` says that it is empty.
fn groups(id: &str, heading: &str, explanation: &str, none: &str, rows: &[Row]) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (heading) }
            @if rows.is_empty() {
                p.note { (none) }
            } @else {
                p.note { (explanation) }
                table {
                    thead {
                        tr { th scope="col" { "Group" } th.text scope="col" { "Where" } (figure_heads()) }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                th scope="row" { (row.group.as_deref().unwrap_or_default()) }
                                td.text { (place(row)) }
                                (figures(row))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn figure_heads() -> Markup {
    html! {
        th scope="col" { "Samples" }
        th scope="col" { "Median" }
        th scope="col" { "95th percentile" }
        th scope="col" { "95th percentile, week before" }
        th scope="col" { "Change" }
        th scope="col" { "Retransmitted" }
        th scope="col" { "Quality" }
    }
}

fn figures(Row { figures, week_before, .. }: &Row) -> Markup {
    let before = week_before.as_ref();
    html! {
        td { (count(figures.rtt.count)) }
        td { (ms(figures.rtt.p50)) }
        td { (ms(figures.rtt.p95)) }
        td { (before.map_or_else(none, |before| ms(before.rtt.p95))) }
        td { (before.map_or_else(none, |before| change(figures, before))) }
        td { (retransmitted(figures)) }
        td { (figures.quality.map_or_else(none, |quality| quality.to_string())) }
    }
}

fn by_hour(report: &Report) -> Markup {
    let ms = |ns: u64| ns as f64 / 1e6;
    let points = |value: &dyn Fn(&Hour) -> Option<u64>| {
        let point = |hour: &Hour| Some((hour.time / SECOND, ms(value(hour)?)));
        report.hours.iter().filter_map(point).collect::<Vec<_>>()
    };
    let lines = [
        Line {
            class: "before",
            name: "95th percentile, week before",
            points: points(&|hour| Some(hour.week_before.as_ref()?.rtt.p95)),
        },
        Line { class: "p95", name: "95th percentile", points: points(&|hour| Some(hour.figures.rtt.p95)) },
        Line { class: "p50", name: "median", points: points(&|hour| Some(hour.figures.rtt.p50)) },
    ];
    let range = report.from / SECOND..report.to / SECOND;
    let marks = marks(&range, &TimeZone::system());
    html! {
        section aria-labelledby="hours" {
            h2 id="hours" { "By the hour: " (place(&report.places[0])) }
            (chart::chart(range.start, range.end, "Round-trip times by hour; the tables below have them in numbers", &lines, &marks))
            p.legend {
                span.key.p50 {} "median " span.key.p95 {} "95th percentile " span.key.before {} "95th percentile, week before"
            }
        }
    }
}

fn busy_hours(report: &Report) -> Markup {
    let mut busiest: Vec<_> = report.hours_of_day.iter().collect();
    busiest.sort_by(|one, other| other.bits_per_second.total_cmp(&one.bits_per_second));
    let busiest: Vec<u8> = busiest.iter().take(BUSIEST).map(|it| it.hour).collect();
    html! {
        section aria-labelledby="busy" {
            h2 id="busy" { "Busy hours" }
            table {
                thead {
                    tr {
                        th scope="col" { "Hour of the day" }
                        th scope="col" { "Mean rate" }
                        th scope="col" { "Samples" }
                        th scope="col" { "Median" }
                        th scope="col" { "95th percentile" }
                        th scope="col" { "Retransmitted" }
                        th scope="col" { "Quality" }
                    }
                }
                tbody {
                    @for hour in &report.hours_of_day {
                        tr.busy[busiest.contains(&hour.hour)] {
                            th scope="row" {
                                (format!("{:02}:00", hour.hour))
                                @if busiest.contains(&hour.hour) { " busy" }
                            }
                            td { (rate(hour.bits_per_second)) }
                            td { (count(hour.figures.rtt.count)) }
                            td { (ms(hour.figures.rtt.p50)) }
                            td { (ms(hour.figures.rtt.p95)) }
                            td { (retransmitted(&hour.figures)) }
                            td { (hour.figures.quality.map_or_else(none, |quality| quality.to_string())) }
                        }
                    }
                }
            }
        }
    }
}

/// The scores of the hours of each day.
#[derive(Default)]
struct Days {
    list: Vec<(String, [Option<u8>; 24])>,
    /// Whether a day has an hour twice, because clocks were set back.
    has_hour_twice: bool,
}

impl Days {
    fn new(hours: &[(Moment, Option<u8>)], zone: &TimeZone) -> Self {
        let mut days = Self::default();
        let mut latest = None;
        for &(moment, quality) in hours {
            let time = zoned(moment, zone);
            if latest.is_none_or(|(date, _)| date != time.date()) {
                days.list.push((time.strftime("%a %-d %b").to_string(), [None; 24]));
            }
            let is_twice = latest == Some((time.date(), time.hour()));
            latest = Some((time.date(), time.hour()));
            days.has_hour_twice |= is_twice;
            let hours = days.list.last_mut().map(|(_, hours)| hours);
            let cell = hours.zip(usize::try_from(time.hour()).ok()).and_then(|(hours, at)| hours.get_mut(at));
            if let Some(cell) = cell {
                *cell = [*cell, quality].into_iter().flatten().min();
            }
        }
        days
    }
}

/// A row per day and a column per hour.
fn quality(report: &Report) -> Markup {
    let hours = report.hours.iter().map(|hour| (hour.time / SECOND, hour.figures.quality));
    let Days { list: days, has_hour_twice } = Days::new(&hours.collect::<Vec<_>>(), &TimeZone::system());
    html! {
        section aria-labelledby="quality" {
            h2 id="quality" { "Quality by hour" }
            p.note {
                "0 to 100 by the profile “" (report.profile) "”, at " (place(&report.places[0])) ". A dot stands for too few samples."
                @if has_hour_twice { " Where a day has an hour twice, because clocks were set back, this is the lower of both scores." }
            }
            table.hours {
                thead {
                    tr { th scope="col" { "Day" } @for hour in 0..24 { th scope="col" { (format!("{hour:02}")) } } }
                }
                tbody {
                    @for (day, hours) in &days {
                        tr {
                            th scope="row" { (day) }
                            @for quality in hours {
                                @match quality {
                                    Some(quality) => td class=(format!("q{}", quality / 20)) { (quality) },
                                    None => td { "·" },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What was lost or not measured on all interfaces.
fn unmeasured(report: &Report) -> Markup {
    let counts = &report.counts;
    let packets = counts.get(PACKETS);
    let known = reasons::UNTRACKED.iter().chain(&reasons::LOSSES);
    let rows = known.filter_map(|reason| {
        let untracked = counts.get(&format!("{UNTRACKED}{}", reason.key));
        let number = if untracked > 0 { untracked } else { counts.get(reason.key) };
        (number > 0).then_some((reason, number))
    });
    let one_way = counts.get("one_way_flows");
    let (queries, unanswered) = (counts.get("dns_queries"), counts.get("dns_unanswered"));
    html! {
        section aria-labelledby="unmeasured" {
            h2 id="unmeasured" { "Losses, and what was not measured" }
            @if packets == 0 {
                p.note { "Nothing was counted in this range." }
            } @else {
                p { "Counted on all interfaces: " (counted(packets, "packet")) " and " (counted(counts.get("samples"), "round-trip time")) "." }
                @if one_way > 0 {
                    p { (counted(one_way, "TCP flow")) " passed in one direction only, so nothing could be measured of " (if one_way == 1 { "it" } else { "them" }) "." }
                }
                @if unanswered > 0 {
                    p { "DNS queries without an answer: " (count(unanswered)) " of " (count(queries)) " (" (percent(unanswered, queries)) ")." }
                }
                table {
                    thead {
                        tr {
                            th scope="col" { "Not measured" }
                            th scope="col" { "Count" }
                            th scope="col" { "Of all packets" }
                            th.text scope="col" { "What it is" }
                            th.text scope="col" { "What helps" }
                        }
                    }
                    tbody {
                        @for (reason, number) in rows {
                            tr {
                                th scope="row" { (reason.name) }
                                td { (count(number)) }
                                td { (percent(number, packets)) }
                                td.text { (reason.what) }
                                td.text { (reason.advice) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where a row was measured, in words.
fn place(Row { place, .. }: &Row) -> String {
    let path = place.matched.map(|matched| match matched {
        Direction::Ingress => "beyond",
        Direction::Egress => "behind",
    });
    let interface = [path, place.interface.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let side = place.side.map(Side::name).map(ToOwned::to_owned);
    let texts = [Some(interface).filter(|it| !it.is_empty()), side, Some(place.method.name().to_owned())];
    texts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A number with commas.
fn count(number: u64) -> String {
    commas(number as f64, 0)
}

/// A number of things, with commas.
fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A number with commas, and with as many digits after the point.
fn commas(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    let whole = text.find('.').unwrap_or(text.len());
    let mut with_commas = String::new();
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            with_commas.push(',');
        }
        with_commas.push(digit);
    }
    with_commas
}

fn none() -> String {
    "–".to_owned()
}

fn ms(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    let digits = if ms < 10.0 { 2 } else { usize::from(ms < 100.0) };
    format!("{} ms", commas(ms, digits))
}

/// How a 95th percentile changed.
fn change(now: &Figures, before: &Figures) -> String {
    if !is_clear(now, before) {
        return "same".to_owned();
    }
    let percent = 100.0 * (now.rtt.p95 as f64 / before.rtt.p95.max(1) as f64 - 1.0);
    format!("{}{} %", if percent < 0.0 { "-" } else { "+" }, commas(percent.abs(), 0))
}

fn retransmitted(Figures { sent, received, .. }: &Figures) -> String {
    percent(sent.retransmissions + received.retransmissions, sent.packets + received.packets)
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.2} %", 100.0 * part as f64 / all.max(1) as f64)
}

fn rate(bits_per_second: f64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let unit = units.into_iter().find(|(unit, _)| bits_per_second >= *unit);
    let (unit, name) = unit.unwrap_or((1.0, "bit/s"));
    format!("{} {name}", commas(bits_per_second / unit, 1))
}

/// The name of the zone of this host.
fn zone() -> String {
    let zone = TimeZone::system();
    zone.iana_name().map_or_else(|| "this host's zone".to_owned(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_the_right_plural() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2, 1000].map(|it| counted(it, "group")), ["1 group", "2 groups", "1,000 groups"]);
        assert_eq!(ms(12_345_678_000), "12,346 ms");
        assert_eq!(ms(1_234_000), "1.23 ms");
        assert_eq!(rate(2_345.6e9), "2,345.6 Gbit/s");
    }

    #[test]
    fn an_hour_that_a_day_has_twice_has_the_lower_score() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        // The midnight of 2026-10-25; clocks are set back from 3:00 to 2:00.
        let midnight: Moment = 1_792_879_200;
        let scores = [70, 80, 40, 90, 60].map(Some);
        let hours: Vec<_> =
            scores.into_iter().zip(0..).map(|(it, hour)| (midnight + 3600 * hour, it)).collect();
        let Days { list, has_hour_twice } = Days::new(&hours, &zone);
        assert_eq!((list.len(), list[0].0.as_str(), has_hour_twice), (1, "Sun 25 Oct", true));
        assert_eq!(list[0].1[..5], [Some(70), Some(80), Some(40), Some(60), None]);
        assert!(!Days::new(&hours, &TimeZone::UTC).has_hour_twice);
    }
}
