//! The moments that a chart marks: those at which clocks on the wall show what people count by.

use std::{iter::successors, ops::Range};

use jiff::{Timestamp, Zoned, civil::Date, tz::TimeZone};

use crate::history::{DAY, Moment};

/// A moment in a zone.
pub(super) fn zoned(moment: Moment, zone: &TimeZone) -> Zoned {
    let second = i64::try_from(moment).ok().and_then(|second| Timestamp::from_second(second).ok());
    second.unwrap_or_default().to_zoned(zone.clone())
}

/// The midnights in a range, or every third hour of a range of up to two days, each with what is written below it.
pub(super) fn marks(range: &Range<Moment>, zone: &TimeZone) -> Vec<(Moment, String)> {
    let is_long = range.end.saturating_sub(range.start) > 2 * DAY;
    let (hours, form) = if is_long { (24, "%a %-d %b") } else { (3, "%H:%M") };
    let [first, last] = [range.start, range.end].map(|moment| zoned(moment, zone).date());
    let days = successors(Some(first), |day: &Date| day.tomorrow().ok()).take_while(|&day| day <= last);
    let times = days.flat_map(|day| (0..24_i8).step_by(hours).map(move |hour| day.at(hour, 0, 0, 0)));
    // A time that a day does not have, because clocks are set forward, is the one after the gap.
    let moments = times.filter_map(|time| time.to_zoned(zone.clone()).ok());
    let marks = moments.filter_map(|time| {
        let moment = Moment::try_from(time.timestamp().as_second()).ok()?;
        range.contains(&moment).then(|| (moment, time.strftime(form).to_string()))
    });
    marks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::HOUR;

    /// Central Europe, without the files of zones.
    fn europe() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn days_are_marked_at_local_midnights_when_clocks_change_too() {
        // 2026-10-25 has 25 hours there, and 2026-03-29 has 23.
        for (start, long_day, length) in
            [(1_792_533_600, "Sun 25 Oct", 25), (1_774_393_200, "Sun 29 Mar", 23)]
        {
            let start: Moment = start;
            let marks = marks(&(start + 5 * HOUR..start + 6 * DAY + 12 * HOUR), &europe());
            assert_eq!(marks.len(), 6, "{marks:?}");
            let at = marks.iter().position(|(_, label)| label == long_day).unwrap();
            for (number, days) in marks.windows(2).enumerate() {
                let hours = if number == at { length } else { 24 };
                assert_eq!(days[1].0 - days[0].0, hours * HOUR, "{marks:?}");
            }
            assert!(marks.iter().all(|&(moment, _)| zoned(moment, &europe()).hour() == 0), "{marks:?}");
        }
    }

    #[test]
    fn hours_of_a_day_are_marked_at_local_times() {
        let india = TimeZone::posix("<+0530>-5:30").unwrap();
        let start = 1_795_651_200;
        let labels: Vec<String> =
            marks(&(start..start + DAY), &india).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "00:00", "03:00"]);
        // The night in which clocks are set back.
        let night = 1_792_879_200;
        let marks = marks(&(night..night + 6 * HOUR), &europe());
        assert_eq!(marks, [(night, "00:00".into()), (night + 4 * HOUR, "03:00".into())]);
    }
}
