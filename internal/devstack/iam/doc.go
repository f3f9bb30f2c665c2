// Package iam decides whether a role's policies allow a call, as AWS's Identity
// and Access Management does: what no statement allows is denied, and a Deny
// outweighs every Allow.
//
// It is pure: documents and requests in, decisions out. It knows no service; what
// a call asks for is found by package guard.
//
// It knows the part of the policy language that a template with exact grants
// needs: Effect, Action, Resource, and conditions with StringEquals, StringLike,
// Null and Bool, with ForAllValues and ForAnyValue before them. Everything else (NotAction,
// Principal, other operators, policy variables) is refused when a policy is read,
// since a condition that is passed over would allow what AWS denies.
//
// Facts: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
// and reference_policies_elements_condition_operators.html beside it.
package iam
