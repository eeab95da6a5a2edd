//! What the module finds on the machine of the host: a configuration of three tokens, keys that the client knows, and a group of which no
//! node can be reached.
//!
//! - Slot 0 is a token with a pool: two keys of it were made by hosts, two of the group were not. Nobody says what will be signed with them.
//! - Slot 1 is the same group, seen after a login with a client's token, which nobody can check.
//! - Slot 2 has no client file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    ptr,
};

use cryptoki_sys::{
    CK_FLAGS, CK_FUNCTION_LIST_3_0, CK_INTERFACE, CK_MECHANISM_TYPE, CK_RV, CK_SESSION_HANDLE, CK_SLOT_ID, CK_UTF8CHAR,
    CK_VERSION, CKM_ECDSA_SHA256, CKM_SHA256_RSA_PKCS, CKR_OK,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng as _};
use serde_json::Value;
use theta_keyfiles::PublicKeyText as _;
use theta_schemes::{
    Suite,
    keys::{AnyPublicKey, deal_any},
};
use theta_sharing::Threshold;

/// How many slots there are.
pub(crate) const SLOTS: CK_SLOT_ID = 3;
/// The slot of the token with a pool.
pub(crate) const POOLED: CK_SLOT_ID = 0;
/// The slot of the token that takes a client's token.
pub(crate) const LOCKED: CK_SLOT_ID = 1;

/// The label of the key on P-256, which a host may also give the module by its numbers.
pub(crate) const P256: &str = "gold";

const VECTORS: [(&str, &str, CK_MECHANISM_TYPE); 2] = [
    (P256, include_str!("../../../../../vectors/ecdsa/ecdsa-p256.json"), CKM_ECDSA_SHA256),
    ("stone", include_str!("../../../../../vectors/sh00/sh00-pkcs1-sha256.json"), CKM_SHA256_RSA_PKCS),
];

const CONFIG: &str = "log = \"/dev/null\"\n\
    [[token]]\nclient = \"client\"\ntimeout_ms = 20\npool = \"zone\"\nlook_ahead = \"absent.sock\"\n\
    [[token]]\nclient = \"client\"\ntimeout_ms = 20\npin = \"token\"\nlabel = \"locked\"\n\
    [[token]]\nclient = \"absent.client\"\n";

/// `C_GetInterface`.
pub(crate) type GetInterface =
    unsafe extern "C" fn(*mut CK_UTF8CHAR, *mut CK_VERSION, *mut *mut CK_INTERFACE, CK_FLAGS) -> CK_RV;

/// A signature that verifies.
pub(crate) struct Known {
    pub(crate) label: &'static str,
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) message: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

/// The machine of the host, and what was seen on it so far.
pub(crate) struct Backing {
    folder: PathBuf,
    /// The ids of the keys that hosts have made.
    made: [String; 2],
    pub(crate) functions: &'static CK_FUNCTION_LIST_3_0,
    pub(crate) known: Vec<Known>,
    /// The point of the key on P-256, uncompressed.
    pub(crate) point: Vec<u8>,
    /// Whether hosts have changed the bindings.
    pub(crate) is_changed: bool,
    /// How many calls may still wait for nodes, since each takes a part of a second.
    pub(crate) waits: u32,
    /// The last handle of a session: none is ever given again.
    pub(crate) last_session: CK_SESSION_HANDLE,
    /// How often each function gave each answer.
    pub(crate) answers: BTreeMap<(&'static str, CK_RV), u64>,
}

impl Backing {
    /// Writes everything into this folder, and has the module of this process find it there. The module is known by the function that hosts
    /// look for.
    pub(crate) fn new(folder: &Path, get_interface: GetInterface) -> Self {
        let keys = folder.join("client").join("keys");
        fs::create_dir_all(&keys).unwrap();
        fs::write(folder.join("pkcs11.toml"), CONFIG).unwrap();
        fs::write(folder.join("client").join("group.toml"), group()).unwrap();
        let put = |label: &str, public: &AnyPublicKey| {
            fs::write(keys.join(format!("{label}.pub")), public.to_text(&label.parse().unwrap())).unwrap();
        };
        let made = ["one", "two"].map(|label| {
            let public = dealt(label);
            put(label, &public);
            hex::encode(public.key_id().as_bytes())
        });
        let (mut known, mut point) = (Vec::new(), Vec::new());
        for (label, vector, mechanism) in VECTORS {
            let vector: Value = serde_json::from_str(vector).unwrap();
            let field = |name: &str| vector[name].as_str().unwrap_or_default();
            put(label, &AnyPublicKey::from_text(field("public_key_file")).unwrap().1);
            let [message, signature] = ["statement", "result"].map(|name| hex::decode(field(name)).unwrap());
            known.push(Known { label, mechanism, message, signature });
            point.extend(hex::decode(field("uncompressed")).unwrap());
        }
        // SAFETY: the one thread that makes calls of the module begins here; no other one reads variables meanwhile.
        unsafe { std::env::set_var("THETA_PKCS11_CONFIG", folder.join("pkcs11.toml")) };
        let backing = Self {
            folder: folder.to_owned(),
            made,
            functions: functions(get_interface),
            known,
            point,
            is_changed: false,
            waits: 0,
            last_session: 0,
            answers: BTreeMap::new(),
        };
        backing.bind(true);
        backing
    }

    fn bindings_file(&self) -> PathBuf {
        self.folder.join("bindings.toml")
    }

    /// Which keys hosts have made, as a program writes it; without the public object of the first one, if another program has destroyed
    /// that.
    pub(crate) fn bind(&self, with_public: bool) {
        let binding = |number: usize| {
            let public = format!("public = {{ id = \"0{number}\", label = \"made-{number}\" }}\n");
            format!(
                "[[binding]]\nkey = \"zone-frost-ed25519-{number}@1\"\nkey_id = \"{}\"\nstate = \"bound\"\n\
                 since = 1795651200\nmechanism = 4181\nprivate = {{ id = \"0{number}\", label = \"made-{number}\" }}\n{}",
                self.made[number - 1],
                if with_public || number > 1 { public } else { String::new() }
            )
        };
        fs::write(self.bindings_file(), format!("{}{}# The end.\n", binding(1), binding(2))).unwrap();
    }

    /// What stands in the file of bindings.
    #[allow(dead_code, reason = "the fuzz target makes sequences alone")]
    pub(crate) fn bindings(&self) -> String {
        fs::read_to_string(self.bindings_file()).unwrap()
    }
}

/// Three nodes at addresses where nobody listens.
fn group() -> String {
    let node = |id: u16| {
        format!(
            "[[node]]\nid = {id}\npeer_address = \"127.0.0.1:{}\"\napi_address = \"127.0.0.1:{id}\"\ncertificate = \"{}\"\n",
            id + 3,
            format!("0{id}").repeat(32)
        )
    };
    format!("name = \"misuse\"\nthreshold = 2\n{}{}{}", node(1), node(2), node(3))
}

/// A key on Ed25519, always the same of this name.
fn dealt(label: &str) -> AnyPublicKey {
    let mut seed = [0; 32];
    seed[..label.len()].copy_from_slice(label.as_bytes());
    let mut rng = ChaCha20Rng::from_seed(seed);
    deal_any(Suite::FrostEd25519, Threshold::new(2, 3).unwrap(), &mut rng).0
}

/// The functions of version 3.0, as hosts find them.
fn functions(get_interface: GetInterface) -> &'static CK_FUNCTION_LIST_3_0 {
    let (mut version, mut found) = (CK_VERSION { major: 3, minor: 0 }, ptr::null_mut::<CK_INTERFACE>());
    // SAFETY: both are variables of this function, and without a name any interface will do.
    let rv = unsafe { get_interface(ptr::null_mut(), &raw mut version, &raw mut found, 0) };
    assert_eq!(rv, CKR_OK);
    // SAFETY: the module has given it, and keeps it as long as there is the process.
    unsafe { &*(*found).pFunctionList.cast::<CK_FUNCTION_LIST_3_0>() }
}
