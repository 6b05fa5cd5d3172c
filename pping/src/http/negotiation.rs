//! Quality values of content negotiation (RFC 9110, 12.4.2).

/// The quality value of `wanted` in a header, in thousandths; `None` if the header does not list it.
pub(super) fn weight(header: &str, wanted: &str) -> Option<u16> {
    header
        .split(',')
        .filter_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let is_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
            let quality = parts
                .filter_map(|part| part.split_once('='))
                .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
            let quality = quality.map_or(Ok(1.0), |(_, value)| value.trim().parse::<f32>());
            is_it.then(|| (quality.unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u16)
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_values_are_parsed() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(weight(prometheus, "application/openmetrics-text"), Some(1000));
        assert_eq!(weight(prometheus, "text/plain"), Some(500));
        assert_eq!(weight(prometheus, "text/html"), None);
        assert_eq!(weight("deflate, gzip;q=0", "gzip"), Some(0));
        assert_eq!(weight("deflate, GZip ; Q=0.25", "gzip"), Some(250));
        assert_eq!(weight("gzip;q=much", "gzip"), Some(0));
        assert_eq!(weight("gzip;q=NaN", "gzip"), Some(0));
        assert_eq!(weight("", "gzip"), None);
    }
}
