// Package lambda runs functions the way AWS Lambda runs them, on this machine.
//
// A Pool starts a function's real binary (bootstrap) as operating system
// processes, called sandboxes, and speaks the Lambda Runtime API to each over a
// listener of its own on the loopback interface. InProcess runs the same handler
// as a Go function, for a debugger. Both are a Function.
//
// Invariants:
//   - a sandbox has at most one invocation at a time;
//   - every invocation is answered once: by the function, or by the pool when the
//     sandbox exits, misses its deadline, or cannot start;
//   - a sandbox that misses the deadline is killed (SIGKILL), never reused;
//   - a sandbox that is about to ask for work counts as supply, so a lone caller
//     never makes a second process;
//   - nothing of this process's environment reaches a sandbox but PATH.
//
// It refuses payloads over Lambda's 6 MB, and more invocations at once than the
// reserved concurrency. It does not imitate memory limits, response streaming,
// layers, or asynchronous invocation.
//
// The protocol: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
package lambda
