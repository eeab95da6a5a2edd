//! A host that looks for keys and makes some, by the functions of C.

use std::ptr;

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_ATTRIBUTE_TYPE, CK_FUNCTION_LIST_3_0, CK_INTERFACE, CK_MECHANISM, CK_OBJECT_HANDLE, CK_RV,
    CK_SESSION_HANDLE, CK_SESSION_INFO, CK_VERSION, CKA_EC_PARAMS, CKA_TOKEN, CKF_RW_SESSION, CKF_SERIAL_SESSION,
    CKM_EC_EDWARDS_KEY_PAIR_GEN, CKR_OK, CKS_RO_USER_FUNCTIONS, CKU_USER,
};
use theta_pkcs11::ffi::C_GetInterface;

/// A host between `C_Initialize` and `C_Finalize`, with one session.
pub(crate) struct Host {
    functions: &'static CK_FUNCTION_LIST_3_0,
    session: CK_SESSION_HANDLE,
}

/// Calls a function of the table.
macro_rules! call {
    ($host:expr, $name:ident($($argument:expr),*)) => {{
        let function = $host.functions.$name.unwrap();
        // SAFETY: each pointer is null or leads to a variable that outlives the call, with room for what is said of it.
        unsafe { function($($argument),*) }
    }};
}

fn attribute(kind: CK_ATTRIBUTE_TYPE, value: &[u8]) -> CK_ATTRIBUTE {
    let len = value.len().try_into().unwrap();
    CK_ATTRIBUTE { type_: kind, pValue: value.as_ptr().cast_mut().cast(), ulValueLen: len }
}

impl Host {
    /// Initialises, and opens a session with the first token.
    pub(crate) fn begin() -> Self {
        let (mut version, mut found) = (CK_VERSION { major: 3, minor: 0 }, ptr::null_mut::<CK_INTERFACE>());
        // SAFETY: both are variables of this function, and without a name any interface will do.
        let rv = unsafe { C_GetInterface(ptr::null_mut(), &raw mut version, &raw mut found, 0) };
        assert_eq!(rv, CKR_OK);
        // SAFETY: the module has given it, and keeps it as long as there is the process.
        let functions = unsafe { &*(*found).pFunctionList.cast::<CK_FUNCTION_LIST_3_0>() };
        let mut host = Self { functions, session: 0 };
        assert_eq!(call!(host, C_Initialize(ptr::null_mut())), CKR_OK);
        let mut session = 0;
        let flags = CKF_SERIAL_SESSION | CKF_RW_SESSION;
        assert_eq!(call!(host, C_OpenSession(0, flags, ptr::null_mut(), None, &raw mut session)), CKR_OK);
        host.session = session;
        host
    }

    /// How many objects there are.
    pub(crate) fn look(&self) -> usize {
        let (mut found, mut count) = ([0 as CK_OBJECT_HANDLE; 256], 0);
        assert_eq!(call!(self, C_FindObjectsInit(self.session, ptr::null_mut(), 0)), CKR_OK);
        assert_eq!(call!(self, C_FindObjects(self.session, found.as_mut_ptr(), 256, &raw mut count)), CKR_OK);
        assert_eq!(call!(self, C_FindObjectsFinal(self.session)), CKR_OK);
        count.try_into().unwrap()
    }

    /// Logs in with this PIN.
    pub(crate) fn log_in(&self, pin: &str) -> CK_RV {
        let len = pin.len().try_into().unwrap();
        call!(self, C_Login(self.session, CKU_USER, pin.as_ptr().cast_mut(), len))
    }

    /// Closes the session.
    pub(crate) fn close(&self) {
        assert_eq!(call!(self, C_CloseSession(self.session)), CKR_OK);
    }

    /// Opens another one.
    pub(crate) fn open(&self) -> CK_SESSION_HANDLE {
        let mut session = 0;
        assert_eq!(call!(self, C_OpenSession(0, CKF_SERIAL_SESSION, ptr::null_mut(), None, &raw mut session)), CKR_OK);
        session
    }

    /// Whether the host is logged in, as a session says.
    pub(crate) fn is_logged_in(&self, session: CK_SESSION_HANDLE) -> bool {
        let mut info = CK_SESSION_INFO::default();
        assert_eq!(call!(self, C_GetSessionInfo(session, &raw mut info)), CKR_OK);
        info.state == CKS_RO_USER_FUNCTIONS
    }

    /// Makes a key on Ed25519.
    pub(crate) fn make(&self) -> CK_RV {
        let mut mechanism =
            CK_MECHANISM { mechanism: CKM_EC_EDWARDS_KEY_PAIR_GEN, pParameter: ptr::null_mut(), ulParameterLen: 0 };
        let mut public = [attribute(CKA_EC_PARAMS, &[0x06, 0x03, 0x2b, 0x65, 0x70]), attribute(CKA_TOKEN, &[1])];
        let (mut private, mut handles) = ([attribute(CKA_TOKEN, &[1])], [0, 0]);
        let [public_key, private_key] = &mut handles;
        call!(
            self,
            C_GenerateKeyPair(
                self.session,
                &raw mut mechanism,
                public.as_mut_ptr(),
                2,
                private.as_mut_ptr(),
                1,
                &raw mut *public_key,
                &raw mut *private_key
            )
        )
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = call!(self, C_Finalize(ptr::null_mut()));
    }
}
