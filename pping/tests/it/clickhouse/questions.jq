# The answers to deploy/clickhouse/queries.sql, worked out from the records themselves: an array of them, by `jq --slurp`.
# A function has the name of its question, and reads its parameters from $ask. Groups are sorted before they are sorted by value, and stay
# so where values are equal.

def rounded: . * 1000 | round / 1000;

def ms: . / 1e6 | rounded;

# The middle of the bin with this highest round-trip time, ns.
def middle:
    if . <= 954 then . / 2 | floor elif . > 64e9 then 64e9 else . * pow(2; -0.0625) | floor end;

# The sum of histograms.
def bins: [.[].histogram[]] | group_by(.[0]) | map([.[0][0], (map(.[1]) | add)]);

def samples: map(.count) | add // 0;

def shortest: map(select(.count > 0).min) | min;

def quantile($part):
    map(select(.count > 0))
    | shortest as $shortest | (map(.max) | max) as $longest | ([1, ($part * samples | ceil)] | max) as $rank
    | [foreach bins[] as $bin (0; . + $bin[1]; select(. >= $rank) | $bin[0])][0]
    | [[middle, $longest] | min, $shortest] | max | ms;

def seconds: sub(" "; "T") + "Z" | fromdate;

# The hour since the epoch in which an interval ended; one that ends at a full hour belongs to the hour before.
def hour: (.timestamp / 3600e9 | ceil) - 1;

def matched: if .match_on_egress == null then "" elif .match_on_egress then "egress" else "ingress" end;

def side: .side // "";

def aggregates: map(select(.interval));

def worst_prefixes($ask):
    ("\($ask.night) 18:00:00" | seconds / 3600) as $evening
    | [aggregates | map(select(.method != "dns" and hour >= $evening - 168 and hour < $evening + ($ask.hours | tonumber)))
        | group_by([.group, .interface // "", matched, side, .method])[] | shortest as $baseline | map(select(hour >= $evening))
        | select(samples >= ($ask.least | tonumber))
        | {group: .[0].group, interface: (.[0].interface // ""), matched: (.[0] | matched), side: (.[0] | side), method: .[0].method,
            samples: samples, baseline_ms: ($baseline | ms),
            p50_ms: quantile(0.5), p95_ms: quantile(0.95), p99_ms: quantile(0.99)}
        | .inflation_ms = (.p95_ms - .baseline_ms | rounded)]
    | sort_by(-.p95_ms);

def month_of_customer($ask):
    [aggregates | map(select(.method != "dns" and .group == $ask.customer) | .day = (hour * 3600 | strftime("%Y-%m-%d")))
        | map(select(.day[:7] == $ask.month[:7])) | group_by([.day, .interface // "", matched, side, .method])[]
        | {day: .[0].day, interface: (.[0].interface // ""), matched: (.[0] | matched), side: (.[0] | side), method: .[0].method, samples: samples, p50_ms: quantile(0.5), p95_ms: quantile(0.95),
            p99_ms: quantile(0.99), bytes_to_customer: (map(if side == "outside" then .rec_bytes else .sent_bytes end) | add),
            bytes_from_customer: (map(if side == "outside" then .sent_bytes else .rec_bytes end) | add),
            retransmitted_percent: (100 * (map(.sent_retransmissions) | add) / ([1, (map(.sent_packets) | add)] | max) * 100 | round / 100)}];

def before_and_after($ask):
    ($ask.change | seconds) as $change
    | [aggregates | map(select(.method != "dns")) | map(.end = .timestamp / 1e9 | .start = .end - .interval / 1e9)
        | map(select(.end > $change - 3600 * ($ask.hours | tonumber) and .end <= $change + 3600 * ($ask.hours | tonumber)))
        | group_by([.group, .interface // "", .match_on_egress, side, .method])[]
        | map(select(.end <= $change)) as $before | map(select(.start >= $change)) as $after
        | select(([$before, $after | samples] | min) >= ($ask.least | tonumber))
        | {group: .[0].group, interface: (.[0].interface // ""), match_on_egress: .[0].match_on_egress, side: (.[0] | side),
            method: .[0].method, samples_before: ($before | samples),
            samples_after: ($after | samples), p50_before_ms: ($before | quantile(0.5)),
            p50_after_ms: ($after | quantile(0.5)), p95_before_ms: ($before | quantile(0.95)),
            p95_after_ms: ($after | quantile(0.95))}
        | .p95_change_ms = (.p95_after_ms - .p95_before_ms | rounded)]
    | sort_by(-.p95_change_ms);

def within($ask): map(select(.count > 0 and .timestamp > ($ask.from | seconds) * 1e9 and .timestamp <= ($ask.until | seconds) * 1e9));

def failing_resolvers($ask):
    [aggregates | within($ask) | map(select(.method == "dns")) | group_by([.group, .interface // "", .match_on_egress, side])[]
        | ([($ask.from, $ask.until | seconds), (.[].timestamp / 1e9 | floor)] | sort) as $times
        | {resolver: .[0].group, interface: (.[0].interface // ""), match_on_egress: .[0].match_on_egress, side: (.[0] | side),
            answers: samples, p50_ms: quantile(0.5), p95_ms: quantile(0.95),
            slow_percent: (100 * ([.[].histogram[] | select(.[0] > 1e9)[1]] | add // 0) / samples * 100 | round / 100),
            longest_silence_s: ([range(1; $times | length) | $times[.] - $times[. - 1]] | max)}]
    | sort_by(-.longest_silence_s, -.slow_percent);

def start_of_inflation($ask):
    [aggregates | within($ask) | group_by([.interface, .match_on_egress, side, .group, .method])[] | shortest as $baseline
        | map(select(.count >= ($ask.least | tonumber) and .p50 >= ($ask.times | tonumber) * $baseline))
        | select(length > 0)
        | {at: (map(.timestamp) | min), since: (map(.timestamp) | min / 1e9 | floor | strftime("%Y-%m-%d %H:%M:%S")), host: $ask.host,
            interface: (.[0].interface // ""), match_on_egress: .[0].match_on_egress, side: (.[0] | side), group: .[0].group,
            method: .[0].method, intervals: length, baseline_ms: ($baseline | ms),
            highest_p50_ms: (map(.p50) | max | ms)}]
    | sort_by(.at, -.highest_p50_ms) | map(del(.at));
