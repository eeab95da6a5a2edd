//! What comes of asking a stock.

/// The reaction to an ask: `S` is the supply that answers it, `U` material that is taken out to sign.
#[derive(Debug)]
pub enum Served<S, U, A = core::convert::Infallible> {
    /// No answer is due.
    Done,
    /// What is asked for is being made: whoever serves asks again in a moment, until it does not want to wait any more.
    Later(A),
    /// The answer.
    Supply(S),
    /// Material that is taken out to sign. `into()` is the answer once it is certain that it never signs again; otherwise its `refused` is.
    Used(U),
}

impl<S, U, A> Served<S, U, A> {
    /// The same of material of any scheme.
    pub(crate) fn map<T, V>(self, supply: impl FnOnce(S) -> T, used: impl FnOnce(U) -> V) -> Served<T, V, A> {
        match self {
            Self::Done => Served::Done,
            Self::Later(ask) => Served::Later(ask),
            Self::Supply(answer) => Served::Supply(supply(answer)),
            Self::Used(material) => Served::Used(used(material)),
        }
    }
}
