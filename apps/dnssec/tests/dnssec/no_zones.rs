//! Texts that are no zone, and what the agent says of each.

use theta_dnssec::zone::Zone;

/// Each sentence says where, what is wrong, and what would be right.
#[test]
fn what_is_no_zone_is_explained() {
    const START: &str = "$TTL 60\n@ SOA ns admin 1 3600 60 86400 60\n";
    let syntax = |what: &str| {
        format!(
            "the zone cannot be read beyond line and column {what}: write what is there, or before, as section 5 of RFC 1035 has it"
        )
    };
    let unclosed = |line: usize| {
        format!("line {line} opens a parenthesis that nothing closes: write ) where the record ends that begins there")
    };
    let outside = "www.other. is not in the zone example.: leave it out, or end its name as that of the zone ends; --origin says which zone it is";
    let start =
        "the zone has no SOA record at its top, example., or several: write one there; --origin says which zone it is";
    for (text, origin, sentence) in [
        (
            START.to_owned(),
            "exam..ple",
            "\"exam..ple\" is not the name of a zone; write it with its dot, as in example.org.",
        ),
        (START.to_owned(), "", "\"\" is not the name of a zone; write it with its dot, as in example.org."),
        (String::new(), "example.", start),
        ("www 60 A 192.0.2.1\n".to_owned(), "example.", start),
        ("www 60 SOA ns admin 1 3600 60 86400 60\n".to_owned(), "example.", start),
        (format!("{START}@ SOA ns admin 2 3600 60 86400 60\n"), "example.", start),
        (format!("{START}www.other. A 192.0.2.1\n"), "example.", outside),
        (format!("{START}www CH A 192.0.2.1\n"), "example.", "www.example. is of another class than IN: leave it out"),
        (format!("{START}$INCLUDE other\n"), "example.", "$INCLUDE is not followed: write the zone in one file"),
        ("@ 60 IN SOA ns\n".to_owned(), "example.", &syntax("2:1: unexpected end of entry")),
        (format!("{START}www A 192.0.2.256\n"), "example.", &syntax("4:1: expected IPv4 address")),
        (format!("{START}www A 192.0.2.1 2\n"), "example.", &syntax("3:17: trailing tokens")),
        (format!("{START}www NOTYPE 1\n"), "example.", &syntax("3:11: expected rtype")),
        (format!("{START}www A 192.0.2.1\n(\n"), "example.", &unclosed(4)),
        (format!("{START}www A 192.0.2.1 (\nmail A 192.0.2.2\n"), "example.", &unclosed(3)),
        (format!("{START}www TXT ( \"(\" ; )\n"), "example.", &unclosed(3)),
        (format!("{START}www A 192.0.2.1 )\n"), "example.", &syntax("3:17: unbalanced parens")),
        (format!("{START}$GENERATE 1-9 host-$ A 192.0.2.$\n"), "example.", &syntax("3:11: unknown control: $GENERATE")),
    ] {
        let said = Zone::parse(text.as_bytes(), origin).unwrap_err().to_string();
        assert_eq!(said, sentence, "{text}");
    }
}
