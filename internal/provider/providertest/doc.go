// Package providertest is the suite that every adapter passes. From the
// adapter's declaration and its vectors it derives what must be accepted and
// what must be refused, and with which cause, so that an adapter cannot be
// added without these proofs. Only tests import it.
package providertest
