// Package templatetest states in tests what template.yaml promises to the code and to its operators: table keys and
// indexes, the environment of every function, the bounds of event sources, exact permissions, and safe defaults.
//
// It reads the template as it stands, before SAM expands it, because that is the text that people change. cfn-lint and
// `sam validate` judge whether the text is valid; this package judges whether it is ours. One test builds
// the functions, to compare the calls that their code can make with what their roles allow. It deploys nothing and talks
// to nobody.
package templatetest
