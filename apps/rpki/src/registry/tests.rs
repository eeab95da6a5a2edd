use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    rsa,
    signature::KeyPair as _,
};
use base64ct::{Base64, Encoding as _};

use super::*;

/// Keys of two authorities, made once.
fn keys() -> &'static [String; 2] {
    static KEYS: std::sync::OnceLock<[String; 2]> = std::sync::OnceLock::new();
    KEYS.get_or_init(|| {
        [(); 2].map(|()| {
            let pair = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).unwrap();
            let der = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key()).unwrap();
            Base64::encode_string(der.as_ref())
        })
    })
}

/// The data of a trust anchor and one member.
pub(crate) fn text() -> String {
    let [anchor, acme] = keys();
    let key = hex::encode([7; 32]);
    format!(
        "name = \"example\"\n\n[[member]]\nhandle = \"acme\"\nasns = [\"AS64496\", \"AS64500-AS64510\"]\nv4 = [\"192.0.2.0/24\"]\n\
         keys = [\"{key}\"]\n\n\
         [[authority]]\nname = \"ta\"\nkey = \"rpki-ta\"\npublic = \"{anchor}\"\n\
         certificate = \"rsync://rpki.example/ta/ta.cer\"\nrepository = \"rsync://rpki.example/repo/ta/\"\n\n\
         [[authority]]\nname = \"acme\"\nkey = \"rpki-acme\"\npublic = \"{acme}\"\nparent = \"ta\"\nmember = \"acme\"\n\
         certificate = \"rsync://rpki.example/repo/ta/acme.cer\"\nrepository = \"rsync://rpki.example/repo/acme/\"\n"
    )
}

#[test]
fn the_data_are_read() {
    let registry = Registry::parse(&text()).unwrap();
    let [anchor, acme] = &registry.authorities[..] else { panic!("two") };
    assert_eq!(registry.resources(anchor), ResourceSet::all());
    let held = ResourceSet::from_strs("AS64496, AS64500-AS64510", "192.0.2.0/24", "").unwrap();
    assert_eq!(registry.resources(acme), held);
    assert_eq!(registry.children(anchor).map(|child| child.name.as_str()).collect::<Vec<_>>(), ["acme"]);
    assert_eq!(registry.authority_of_key("rpki-acme"), Some(acme));
    assert_eq!(registry.name, "example");
    assert_eq!(registry.terms.longest_list, 48 * 3_600);
    assert_eq!(acme.address(&acme.manifest_name()), "rsync://rpki.example/repo/acme/acme.mft");
}

#[test]
fn mistakes_are_explained() {
    let [anchor, acme] = keys();
    for (from, to, words) in [
        ("handle = \"acme\"", "handle = \"Acme\"", "a to z"),
        ("AS64496", "ASx", "its resources cannot be read"),
        ("192.0.2.0/24", "192.0.2.0/33", "its resources cannot be read"),
        ("keys = [\"07", "keys = [\"7", "64 hexadecimal digits"),
        ("name = \"acme\"", "name = \"ta\"", "another authority has the same name"),
        ("parent = \"ta\"", "parent = \"nobody\"", "its parent is no authority before it"),
        ("parent = \"ta\"\n", "", "both a parent and a member"),
        ("member = \"acme\"", "member = \"nobody\"", "its member is none"),
        ("repo/ta/acme.cer", "repo/acme/acme.cer", "published by its parent"),
        ("repo/acme/\"", "repo/acme\"", "ends with /"),
        ("example/ta/ta.cer", "example/repo/ta/ta.cer", "its certificate is in the folder in which ta publishes"),
        ("example/ta/ta.cer", "example/repo/acme/ta.cer", "its certificate is in the folder in which acme publishes"),
        (acme.as_str(), anchor.as_str(), "another authority has the same name, key"),
        (acme.as_str(), "AAAA", "no SubjectPublicKeyInfo"),
        ("handle", "handel", "handel"),
        ("name = \"example\"", "", "name"),
        ("name = \"example\"", "name = \"An example\"", "a to z"),
        ("[[member]]", "[terms]\nobject_days = 7\n\n[[member]]", "four times as long as lists"),
    ] {
        let wrong = text().replace(from, to);
        assert_ne!(wrong, text(), "{from}");
        let error = Registry::parse(&wrong).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(Registry::parse("name = \"example\"").unwrap_err().to_string().contains("nothing could be signed"));
}
