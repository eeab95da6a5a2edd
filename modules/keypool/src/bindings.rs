//! Which keys have been given to hosts, and as what hosts know them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The most bindings in a file: keys of released ones stay there for ever.
const MOST: usize = 65_536;
/// The longest `CKA_ID` and the longest label in bytes.
pub(crate) const MOST_BYTES: usize = 1024;

/// What has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is a host's.
    Bound,
    /// A host had it and has deleted it: nobody gets it again.
    Released,
}

/// As what a host knows one of a key's two objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// `CKA_ID`; `None` if the host gave none: then it is the beginning of the key's id.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hexadecimal")]
    pub id: Option<Vec<u8>>,
    /// `CKA_LABEL`; `None` if the host gave none: then it is the key's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A key that was given to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The key as the group names it: `NAME@VERSION`.
    pub key: String,
    /// The key's id: a digest of its public key, so that no other key has it.
    pub key_id: [u8; 32],
    /// What has become of it.
    pub state: State,
    /// When it was given to the host, in seconds since the beginning of 1970.
    pub since: u64,
    /// The mechanism by which the host made it, as PKCS#11 numbers them.
    pub mechanism: u64,
    /// Its private key.
    pub private: Shown,
    /// Its public key; `None` if the host has deleted that object.
    pub public: Option<Shown>,
}

/// All keys that were given to hosts of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(BTreeMap<[u8; 32], Binding>);

/// How the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    binding: Vec<Fields>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    key: String,
    key_id: String,
    state: State,
    since: u64,
    mechanism: u64,
    private: Shown,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public: Option<Shown>,
}

/// Bytes as hexadecimal digits.
mod hexadecimal {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes.as_deref().unwrap_or_default()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = String::deserialize(deserializer)?;
        hex::decode(text).map(Some).map_err(D::Error::custom)
    }
}

/// What the file begins with.
const COMMENT: &str = "# Which keys of the group's pool belong to which programs on this machine. libtheta_pkcs11.so writes this file; keep it, and back\n\
    # it up: without it the programs do not find their keys, and keys are given away a second time.\n";

/// What the file ends with: what was cut off is missed.
const END: &str = "# The end.";

impl Bindings {
    /// The binding of the key with this id.
    #[must_use]
    pub fn of(&self, key_id: &[u8; 32]) -> Option<&Binding> {
        self.0.get(key_id)
    }

    /// Whether the key with this id may be given to a host: no host has it, or has had it.
    #[must_use]
    pub fn is_free(&self, key_id: &[u8; 32]) -> bool {
        !self.0.contains_key(key_id)
    }

    /// All, in no order that matters.
    pub fn iter(&self) -> impl Iterator<Item = &Binding> {
        self.0.values()
    }

    /// Puts a binding in, or in the place of the one that its key has.
    pub fn put(&mut self, binding: Binding) {
        self.0.insert(binding.key_id, binding);
    }

    /// The text of the file, which [`Self::parse`] reads.
    ///
    /// # Errors
    /// In words, if there are more bindings than a file may have or something in them has no form in it.
    pub(crate) fn to_text(&self) -> Result<String, String> {
        if self.0.len() > MOST {
            return Err(format!("there are {} bindings, and a file has at most {MOST}", self.0.len()));
        }
        let mut all: Vec<&Binding> = self.0.values().collect();
        all.sort_by_key(|binding| (binding.since, &binding.key));
        let fields = |binding: &Binding| Fields {
            key: binding.key.clone(),
            key_id: hex::encode(binding.key_id),
            state: binding.state,
            since: binding.since,
            mechanism: binding.mechanism,
            private: binding.private.clone(),
            public: binding.public.clone(),
        };
        let file = File { binding: all.into_iter().map(fields).collect() };
        let text = toml::to_string(&file).map_err(|error| error.to_string())?;
        Ok(format!("{COMMENT}{text}{END}\n"))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim_end().lines().next_back() != Some(END) {
            return Err(format!("its end is missing, which is the line {END:?}"));
        }
        let File { binding } =
            toml::from_str(text).map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned())?;
        if binding.len() > MOST {
            return Err(format!("it has {} bindings, and a file has at most {MOST}", binding.len()));
        }
        let mut all = BTreeMap::new();
        for fields in binding {
            let checked = fields.check()?;
            if let Some(first) = all.insert(checked.key_id, checked) {
                return Err(format!("{} stands in it twice", first.key));
            }
        }
        Ok(Self(all))
    }
}

impl Fields {
    fn check(self) -> Result<Binding, String> {
        let Self { key, key_id, state, since, mechanism, private, public } = self;
        key.parse::<theta_names::KeyRef>().map_err(|error| error.to_string())?;
        let mut id = [0; 32];
        hex::decode_to_slice(&key_id, &mut id).map_err(|error| format!("the key_id of {key}: {error}"))?;
        let long = |shown: &Shown| {
            shown.id.as_ref().is_some_and(|id| id.len() > MOST_BYTES)
                || shown.label.as_ref().is_some_and(|label| label.len() > MOST_BYTES)
        };
        if long(&private) || public.as_ref().is_some_and(long) {
            return Err(format!("{key} has an id or a label of more than {MOST_BYTES} bytes"));
        }
        Ok(Binding { key, key_id: id, state, since, mechanism, private, public })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn binding(number: u8) -> Binding {
        let shown = |id: Option<Vec<u8>>, label: Option<&str>| Shown { id, label: label.map(str::to_owned) };
        Binding {
            key: format!("zone-ecdsa-p256-{number}@1"),
            key_id: [number; 32],
            state: if number.is_multiple_of(2) { State::Bound } else { State::Released },
            since: 1_795_651_200 + u64::from(number),
            mechanism: 0x1040,
            private: shown(Some(vec![number, 0xff]), Some("a \"zone\"\n= [[binding]]")),
            public: (number != 1).then(|| shown(Some(Vec::new()), None)),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bindings = Bindings::default();
        assert_eq!(Bindings::parse(&bindings.to_text().unwrap()), Ok(bindings.clone()));
        (1..=3).for_each(|number| bindings.put(binding(number)));
        let text = bindings.to_text().unwrap();
        assert_eq!(Bindings::parse(&text), Ok(bindings.clone()), "{text}");
        assert!(!bindings.is_free(&[1; 32]) && !bindings.is_free(&[2; 32]) && bindings.is_free(&[4; 32]));
        assert_eq!(bindings.iter().count(), 3);
    }

    /// A file that lost its end, at whatever byte, is not taken for one with fewer bindings.
    #[test]
    fn what_was_cut_off_is_missed() {
        let mut bindings = Bindings::default();
        (1..=3).for_each(|number| bindings.put(binding(number)));
        let text = bindings.to_text().unwrap();
        let whole = text.trim_end().len();
        for end in (0..whole).filter(|end| text.is_char_boundary(*end)) {
            if let Ok(read) = Bindings::parse(&text[..end]) {
                panic!("{} of {whole} bytes were read as {} bindings", end, read.0.len());
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let mut bindings = Bindings::default();
        (1..=2).for_each(|number| bindings.put(binding(number)));
        let good = bindings.to_text().unwrap();
        for (from, to, word) in [
            (END, "", "its end is missing"),
            (&*hex::encode([2; 32]), &*hex::encode([1; 32]), "twice"),
            (&*hex::encode([2; 32]), "02", "key_id"),
            ("zone-ecdsa-p256-2@1", "Zone@1", "Zone"),
            ("state = \"bound\"", "state = \"lost\"", "lost"),
            ("mechanism", "mechanisms", "mechanisms"),
        ] {
            let error = Bindings::parse(&good.replace(from, to)).unwrap_err();
            assert!(error.contains(word), "{from}: {error}");
        }
    }
}
