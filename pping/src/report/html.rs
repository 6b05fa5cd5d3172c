//! The page of a report. It has everything in it: no script, no request, and it can be printed.

use jiff::{Timestamp, Zoned, tz::TimeZone};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pping_common::{group::Side, limits::SECOND, parse::Direction};

use super::{
    chart::{self, Line},
    digest::{Figures, Hour, Report, Row},
};
use crate::{
    history::{DAY, Moment, PACKETS, SECONDS, UNTRACKED, local},
    reasons,
};

const STYLE: &str = include_str!("report.css");

/// The busiest hours of the day, which are marked.
const BUSIEST: usize = 3;

/// Writes the page of a report.
pub(super) fn page(report: &Report) -> String {
    let title = title(report);
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
                    (groups("worst", "Worst groups", "By the 95th percentile of their worst series.", &report.worst))
                    (groups("best", "Best groups", "By the same.", &report.best))
                    (groups("worse", "Worse than the week before", "By the rise of the 95th percentile.", &report.worse))
                    (groups("better", "Better than the week before", "By its fall.", &report.better))
                    (unmeasured(report))
                    footer {
                        p { "Written by pping " (report.version) ". Percentiles are those of all samples, within 4.4 %; times are those of " (zone()) "." }
                    }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn title(report: &Report) -> String {
    let site = report.site.as_ref().map(|site| format!(" of {site}")).unwrap_or_default();
    format!("Latency{site}, {} to {}", local(report.from / SECOND), local(report.to / SECOND))
}

fn summary(report: &Report) -> Markup {
    let main = &report.places[0];
    let rtt = main.figures.rtt;
    html! {
        p.summary {
            (count(report.groups as u64)) " groups had samples. Most were measured at " strong { (place(main)) } ": half of its "
            (rtt.count) " round-trip times took at most " strong { (ms(rtt.p50)) } ", 95 % at most " strong { (ms(rtt.p95)) }
            @match &main.week_before {
                Some(before) => { ", in the week before " (ms(before.rtt.p50)) " and " (ms(before.rtt.p95)) "." }
                None => { ". Of the week before there is nothing to compare with." }
            }
        }
        (measured_for(report))
    }
}

/// Says so if pping did not measure all the time.
fn measured_for(report: &Report) -> Markup {
    let (measured, all) = (report.counts.get(SECONDS), (report.to - report.from) / SECOND);
    html! {
        @if measured > 0 && measured * 100 < all * 99 {
            p.warning {
                "pping measured for " (format!("{:.1}", measured as f64 / 3600.0)) " of " (all / 3600) " hours."
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

fn groups(id: &str, heading: &str, explanation: &str, rows: &[Row]) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (heading) }
            @if rows.is_empty() {
                p.note { "There are none with enough samples." }
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
        th scope="col" { "Week before" }
        th scope="col" { "Change" }
        th scope="col" { "Retransmitted" }
        th scope="col" { "Quality" }
    }
}

fn figures(Row { figures, week_before, .. }: &Row) -> Markup {
    let before = week_before.as_ref().map(|before| before.rtt.p95);
    html! {
        td { (count(figures.rtt.count)) }
        td { (ms(figures.rtt.p50)) }
        td { (ms(figures.rtt.p95)) }
        td { (before.map_or_else(none, ms)) }
        td { (before.map_or_else(none, |before| change(figures.rtt.p95, before))) }
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
    let is_long = report.to - report.from > 2 * DAY * SECOND;
    let label =
        |moment: Moment| zoned(moment).strftime(if is_long { "%a %-d %b" } else { "%H:%M" }).to_string();
    html! {
        section aria-labelledby="hours" {
            h2 id="hours" { "By the hour: " (place(&report.places[0])) }
            (chart::chart(report.from / SECOND, report.to / SECOND, "Round-trip times by hour; the tables below have them in numbers", &lines, label))
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

/// A row per day and a column per hour.
fn quality(report: &Report) -> Markup {
    let mut days: Vec<(String, [Option<u8>; 24])> = Vec::new();
    for hour in &report.hours {
        let time = zoned(hour.time / SECOND);
        let day = time.strftime("%a %-d %b").to_string();
        if days.last().is_none_or(|(last, _)| *last != day) {
            days.push((day, [None; 24]));
        }
        if let (Some((_, hours)), Ok(at)) = (days.last_mut(), usize::try_from(time.hour())) {
            hours[at] = hour.figures.quality;
        }
    }
    html! {
        section aria-labelledby="quality" {
            h2 id="quality" { "Quality by hour" }
            p.note {
                "0 to 100 by the profile “" (report.profile) "”, at " (place(&report.places[0])) ". A dot stands for too few samples."
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
                p { "On all interfaces " (count(packets)) " packets were seen, and " (count(counts.get("samples"))) " round-trip times measured." }
                @if one_way > 0 {
                    p { (count(one_way)) " TCP flows passed in one direction only, so nothing could be measured of them." }
                }
                @if unanswered > 0 {
                    p { (count(unanswered)) " of " (count(queries)) " DNS queries were not answered (" (percent(unanswered, queries)) ")." }
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
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn none() -> String {
    "–".to_owned()
}

fn ms(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    let digits = if ms < 10.0 { 2 } else { usize::from(ms < 100.0) };
    format!("{ms:.digits$} ms")
}

fn change(now: u64, before: u64) -> String {
    format!("{:+.0} %", 100.0 * (now as f64 / before.max(1) as f64 - 1.0))
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
    format!("{:.1} {name}", bits_per_second / unit)
}

fn zoned(moment: Moment) -> Zoned {
    let second = i64::try_from(moment).ok().and_then(|second| Timestamp::from_second(second).ok());
    second.unwrap_or_default().to_zoned(TimeZone::system())
}

/// The name of the zone of this host.
fn zone() -> String {
    let zone = TimeZone::system();
    zone.iana_name().map_or_else(|| "this host's zone".to_owned(), ToOwned::to_owned)
}
