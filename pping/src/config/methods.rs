//! `--methods`, `--tcp-method` and `--dns-ports`.

use pping_common::{
    limits::{DNS_PORT, MAX_DNS_PORTS},
    method::{Method, Methods},
};

use super::{
    error::SettingError,
    values::{MethodName, TcpMethod},
};

/// The methods of a list.
pub(super) fn listed(names: &[MethodName]) -> Methods {
    let add = |methods: Methods, name: &MethodName| match *name {
        MethodName::One(method) => methods.with(method),
        MethodName::All => Methods::ALL,
    };
    names.iter().fold(Methods::NONE, add)
}

/// Applies `--tcp-method` to the listed methods.
pub(super) fn wanted(listed: Methods, tcp_method: TcpMethod) -> Result<Methods, SettingError> {
    let (has_ts, has_seq) = (listed.has(Method::TcpTs), listed.has(Method::TcpSeq));
    let refused = |value, hint| Err(SettingError::contradiction("tcp-method", value, hint));
    match tcp_method {
        TcpMethod::Ts if !has_ts => refused("ts", "tcp-ts is not among --methods; add it there"),
        TcpMethod::Seq if !has_seq => refused("seq", "tcp-seq is not among --methods; add it there"),
        TcpMethod::Both if !(has_ts && has_seq) => {
            refused("both", "it needs both tcp-ts and tcp-seq among --methods; add them there")
        }
        // Without tcp-ts, sequence numbers measure every flow, even one with timestamps.
        TcpMethod::Auto if has_seq && !has_ts => Ok(listed.with_seq_always()),
        TcpMethod::Auto => Ok(listed),
        TcpMethod::Ts => Ok(listed.without(Method::TcpSeq)),
        TcpMethod::Seq => Ok(listed.without(Method::TcpTs).with_seq_always()),
        TcpMethod::Both => Ok(listed.with_seq_always()),
    }
}

/// The ports of a list, each once and in order.
pub(super) fn dns_ports(list: &[u16], methods: Methods) -> Result<[u16; MAX_DNS_PORTS], SettingError> {
    let refused = |hint| {
        let value: Vec<String> = list.iter().map(u16::to_string).collect();
        Err(SettingError::contradiction("dns-ports", value.join(","), hint))
    };
    if list != [DNS_PORT] && !methods.has(Method::Dns) {
        return refused("DNS is not measured: dns is not among --methods; add it there, or leave this out");
    }
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ports = [0; MAX_DNS_PORTS];
    let Some(used) = ports.get_mut(..sorted.len()) else {
        return refused("give at most seven ports");
    };
    used.copy_from_slice(&sorted);
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use clap::{Parser as _, ValueEnum as _};

    use super::*;
    use crate::config::{Arguments, Config, Error};

    fn config(given: &str) -> Result<Config, Error> {
        let typed = ["pping", "-i", "eth0"].into_iter().chain(given.split_whitespace());
        Config::try_from(Arguments::try_parse_from(typed).unwrap())
    }

    fn methods(given: &str) -> Methods {
        config(given).unwrap().rules.methods
    }

    #[test]
    fn a_method_is_named_as_in_records_and_all_are_on_unless_given() {
        for name in MethodName::value_variants() {
            let value = name.to_possible_value().unwrap();
            let expected = match name {
                MethodName::One(method) => method.name(),
                MethodName::All => "all",
            };
            assert_eq!(value.get_name(), expected);
        }
        assert_eq!(methods(""), Methods::ALL);
    }

    #[test]
    fn listed_methods_are_on_and_no_others() {
        assert_eq!(methods("--methods dns,tcp-ts,dns"), Methods::NONE.with(Method::Dns).with(Method::TcpTs));
        let handshakes = Methods::NONE.with(Method::TcpHandshake).with(Method::QuicHandshake);
        assert_eq!(methods("--methods tcp-handshake --methods quic-handshake"), handshakes);
        assert_eq!(methods("--methods all"), Methods::ALL);
        assert_eq!(methods("--methods dns,all,tcp-ts"), Methods::ALL);
    }

    #[test]
    fn tcp_method_chooses_among_the_methods_that_are_on() {
        let both = Methods::NONE.with(Method::TcpTs).with(Method::TcpSeq);
        let always = Methods::NONE.with_seq_always();
        for (given, expected) in [
            ("--methods tcp-ts,tcp-seq", both),
            ("--methods tcp-ts", Methods::NONE.with(Method::TcpTs)),
            ("--methods tcp-seq", always),
            ("--methods tcp-seq --tcp-method seq", always),
            ("--methods tcp-ts,tcp-seq --tcp-method ts", Methods::NONE.with(Method::TcpTs)),
            ("--methods tcp-ts,tcp-seq --tcp-method seq", always),
            ("--methods tcp-ts,tcp-seq --tcp-method both", both.with_seq_always()),
            ("--tcp-method ts", Methods::ALL.without(Method::TcpSeq)),
            ("--tcp-method both", Methods::ALL.with_seq_always()),
        ] {
            assert_eq!(methods(given), expected, "{given}");
        }
    }

    #[test]
    fn contradictions_are_rejected() {
        for (given, begin, part) in [
            ("--methods tcp-ts --tcp-method seq", "--tcp-method seq: ", "tcp-seq is not among --methods"),
            ("--methods tcp-seq --tcp-method ts", "--tcp-method ts: ", "tcp-ts is not among --methods"),
            ("--methods dns,tcp-seq --tcp-method both", "--tcp-method both: ", "both tcp-ts and tcp-seq"),
            ("--methods tcp-ts --dns-ports 53,5353", "--dns-ports 53,5353: ", "dns is not among --methods"),
            ("--dns-ports 1,2,3,4,5,6,7,8", "--dns-ports 1,2,3,4,5,6,7,8: ", "seven"),
        ] {
            let message = config(given).unwrap_err().to_string();
            assert!(message.starts_with(begin) && message.contains(part), "{message}");
        }
    }

    #[test]
    fn dns_ports_are_sorted_and_unique() {
        let ports = |given: &str| config(given).unwrap().dns_ports;
        assert_eq!(ports(""), [53, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ports("--dns-ports 5353,53,5353"), [53, 5353, 0, 0, 0, 0, 0]);
        assert_eq!(ports("--dns-ports 7,6,5,4,3,2,1,1"), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(ports("--methods tcp-ts"), [53, 0, 0, 0, 0, 0, 0]);
    }
}
