//! How messages travel.

/// How a message travels between two members, or must travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// From one member to one other, authenticated and encrypted. A message for all is sent to each.
    Private,
    /// Authenticated and readable by anyone. An honest sender sends the same to all; a dishonest one may not.
    Broadcast,
    /// Totally ordered broadcast: all receive the same messages in the same order, even from a dishonest sender.
    Ordered,
}

impl Channel {
    /// Whether a message that must travel by `demanded` may come by this channel. A broadcast message may come by any channel; a
    /// private message needs the private channel, an ordered one the ordered channel.
    #[must_use]
    pub const fn carries(self, demanded: Self) -> bool {
        matches!(
            (self, demanded),
            (Self::Private, Self::Private | Self::Broadcast)
                | (Self::Broadcast, Self::Broadcast)
                | (Self::Ordered, Self::Broadcast | Self::Ordered)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Channel::{self, Broadcast, Ordered, Private};

    #[test]
    fn what_a_channel_carries() {
        let all = [Private, Broadcast, Ordered];
        let carried = |channel: Channel| all.map(|demanded| channel.carries(demanded));
        assert_eq!(carried(Private), [true, true, false]);
        assert_eq!(carried(Broadcast), [false, true, false]);
        assert_eq!(carried(Ordered), [false, true, true]);
    }
}
