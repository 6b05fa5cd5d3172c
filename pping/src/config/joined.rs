//! Joined interfaces in `--interface`, as in `eth1+eth2`.

use super::error::SettingError;
use crate::spelling::{JOINT, pattern};

/// Checks the names of joined interfaces by themselves. `is_name` checks one of them.
pub(super) fn check(text: &str, is_name: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
    let ports: Vec<&str> = text.split(JOINT).collect();
    for (at, port) in ports.iter().enumerate() {
        if pattern(port).is_some() {
            return Err(format!("{port} is a pattern; name each interface to join, as in eth1+eth2"));
        }
        if port.is_empty() {
            return Err("a name is missing beside +; name each interface to join, as in eth1+eth2".to_owned());
        }
        if ports[..at].contains(port) {
            return Err(format!("{port} is there twice; name it once"));
        }
        is_name(port)?;
    }
    Ok(())
}

/// Checks that no interface is both joined and given again.
pub(super) fn conflict(interfaces: &[String]) -> Option<SettingError> {
    let given: Vec<(&String, &str)> =
        interfaces.iter().flat_map(|text| text.split(JOINT).map(move |port| (text, port))).collect();
    given.iter().enumerate().find_map(|(at, &(text, port))| {
        let (other, _) = given[..at].iter().find(|&&(other, of_other)| of_other == port && other != text)?;
        let reason = format!(
            "{port} is in {other} already, and its packets count once; leave it out here, or join all with one --interface"
        );
        Some(SettingError::contradiction("interface", text, &reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_interfaces_are_named_each_once() {
        let reason = |text| check(text, |_| Ok(())).unwrap_err();
        assert_eq!(check("eth1+eth2+wan0", |_| Ok(())), Ok(()));
        assert!(reason("eth1+").contains("a name is missing"));
        assert!(reason("+").contains("a name is missing"));
        assert!(reason("eth1+eth*").contains("eth* is a pattern"));
        assert!(reason("eth1+eth2+eth1").contains("eth1 is there twice"));
        assert_eq!(check("eth1+a/b", |name| Err(name.to_owned())), Err("eth1".to_owned()));
    }

    #[test]
    fn an_interface_counts_in_one_place() {
        let conflict = |given: &[&str]| {
            let given: Vec<_> = given.iter().map(|&text| text.to_owned()).collect();
            conflict(&given).map(|error| error.to_string())
        };
        assert_eq!(conflict(&["eth1+eth2", "wan0", "ppp*"]), None);
        for given in [["eth1+eth2", "eth2+eth3"], ["eth2", "eth2+eth3"], ["eth1+eth2", "eth2"]] {
            let message = conflict(&given).unwrap();
            assert!(
                message.starts_with(&format!("--interface {}: eth2 is in {}", given[1], given[0])),
                "{message}"
            );
        }
    }
}
