//! What tools that are made from functions declare of themselves.

/// Gives a tool with a field `def` the methods that change what it declares.
macro_rules! declares {
    ($tool:ident<$($parameter:ident),+>) => {
        impl<$($parameter),+> $tool<$($parameter),+> {
            /// Running it again changes nothing.
            pub fn pure(mut self) -> Self {
                self.def.class = $crate::tool::RetryClass::Pure;
                self
            }

            /// Repeats with the same [`ToolCx::idempotency_key`](crate::tool::ToolCx::idempotency_key) have their effects once.
            pub fn idempotent(mut self) -> Self {
                self.def.class = $crate::tool::RetryClass::Idempotent;
                self
            }

            /// Each call waits for approval.
            pub fn needs_approval(mut self) -> Self {
                self.def.requires_approval = true;
                self
            }

            /// It runs alone in its batch.
            pub fn sequential(mut self) -> Self {
                self.def.sequential = true;
                self
            }

            /// Declares that it is polled: equal results of equal calls are no loop.
            #[must_use]
            pub fn polling(mut self) -> Self {
                self.def.polling = true;
                self
            }

            /// Declares that all that it changes is a state of its own.
            #[must_use]
            pub fn internal(mut self) -> Self {
                self.def.internal = true;
                self
            }

            /// A good result of it ends the turn after its batch.
            #[must_use]
            pub fn terminal(mut self) -> Self {
                self.def.terminal = true;
                self
            }

            /// What one call may spend beyond itself at most.
            pub fn share(mut self, share: $crate::limits::Amount) -> Self {
                self.def.share = share;
                self
            }

            /// The caller's own data.
            pub fn metadata(mut self, metadata: $crate::json::Json) -> Self {
                self.def.metadata = Some(metadata);
                self
            }
        }
    };
}

pub(super) use declares;
