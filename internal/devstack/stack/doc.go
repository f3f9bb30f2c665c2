// Package stack reads a SAM template and creates what it declares in local
// services, so that template.yaml is the one source of truth for the machine at
// hand and for AWS.
//
// goformation's intrinsics package reads the YAML and evaluates conditions,
// parameters' defaults and intrinsic functions. References to resources become
// marks in the text, which are filled in once the resource exists: each resource
// is created after those that it refers to.
//
// Invariants:
//   - tables, indexes, streams, time to live, queues, buckets and keys are created
//     exactly as declared, or Create fails;
//   - a resource type or a property that this package does not know is an error,
//     unless it stands on a list with the reason why it means nothing locally;
//   - a reference to something that is not created locally is an error wherever
//     its value would be used, but in a policy, where it stands for what no call
//     reaches;
//   - a role's policies are read whole, or Create fails.
//
// It does not know Globals, nested stacks, SAM's HttpApi type and event, SAM's
// policies of a function, the policies of resources, or any function that is not
// provided.al2023. A function without a Role has no permissions to check.
package stack
