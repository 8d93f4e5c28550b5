//! Object-safe twins of the ports.

/// Declares the object-safe twin of a port, and gives it to every implementor: each `async` method as one that boxes its
/// future (references live for `'a`), the others as they are. A method of a twin has a name of its own, so that both
/// traits can be in scope.
macro_rules! twin {
    ($twin:ident of $port:ident {
        $(async fn $boxed:ident = $asynchronous:ident($($arg:ident: $type:ty),*) -> $out:ty;)*
        $(fn $named:ident = $plain:ident($($plain_arg:ident: $plain_type:ty),*) $(-> $plain_out:ty)?;)*
    }) => {
        #[doc = concat!("The object-safe twin of [`", stringify!($port), "`]; every implementor has it.")]
        #[doc(hidden)]
        pub trait $twin: Send + Sync {
            $(fn $boxed<'a>(&'a self, $($arg: $type),*) -> $crate::base::BoxFuture<'a, $out>
            where
                Self: 'a;)*
            $(fn $named(&self, $($plain_arg: $plain_type),*) $(-> $plain_out)?;)*
        }

        impl<T: $port> $twin for T {
            $(fn $boxed<'a>(&'a self, $($arg: $type),*) -> $crate::base::BoxFuture<'a, $out>
            where
                Self: 'a,
            {
                Box::pin(self.$asynchronous($($arg),*))
            })*
            $(fn $named(&self, $($plain_arg: $plain_type),*) $(-> $plain_out)? {
                self.$plain($($plain_arg),*)
            })*
        }
    };
}

pub(crate) use twin;
