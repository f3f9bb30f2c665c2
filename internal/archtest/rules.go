package archtest

// module is this module's path, the prefix of its own imports.
const module = "dakghar"

// A Rule says what the packages of one layer may import besides the standard library.
type Rule struct {
	// Layer names the rule in reports.
	Layer string
	// Packages are patterns of directories below the module's root; the first rule that matches a package governs it.
	// "a/..." is a and everything below it.
	Packages []string
	// Ours are patterns of this module's packages that it may import.
	Ours []string
	// Libraries are prefixes of other modules' packages that it may import; "..." is any.
	Libraries []string
	// Never are prefixes of packages that it may not import although the above, or the standard library, would let it.
	Never []string
	// Sentence is what is broken by any other import.
	Sentence string
}

var (
	parts    = []string{"internal/provider/...", "internal/ordering", "internal/business/...", "internal/directory", "internal/limit", "internal/effect"}
	stages   = []string{"internal/ingress", "internal/relay", "internal/processor", "internal/dispatcher", "internal/reconciler", "internal/canary", "internal/operator"}
	adapters = []string{"internal/dynamo", "internal/queue", "internal/secret", "internal/body", "internal/egress", "internal/sink", "internal/telemetry"}
	edges    = []string{"internal/lambdaedge"}
	wiring   = []string{"internal/config", "internal/awsconfig", "internal/awsfault"}
	// helpers exist for development and tests.
	helpers = []string{"internal/devstack/...", "internal/storetest", "internal/crashtest", "internal/sim/...", "internal/conform/...", "internal/bench/...", "internal/e2e", "internal/provider/providertest", "internal/provider/remote/fakeprovider", "internal/operator/operatortest", "internal/archtest", "internal/templatetest", "internal/doctest", "internal/dashboard/..."}
)

// words, each of which may import those behind it.
var words = []string{"internal/delivery", "internal/webhook", "internal/signature", "internal/backoff", "internal/fault"}

const (
	awsSDK    = "github.com/aws/aws-sdk-go-v2"
	smithy    = "github.com/aws/smithy-go"
	lambdaLib = "github.com/aws/aws-lambda-go"
	strictly  = "github.com/go-json-experiment/json" // JSON that refuses duplicate and case-folded names
	xsync     = "golang.org/x/sync"
)

// impure is the part of the standard library that reaches the world: processes, files, the network, logs, chance.
var impure = []string{"os", "os/exec", "net", "net/rpc", "net/smtp", "syscall", "plugin", "log", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "unsafe"}

// Rules is the layout of DESIGN, section 3.
var Rules = append(wordRules(),
	Rule{
		Layer: "helper", Packages: helpers,
		Ours: []string{"internal/..."}, Libraries: []string{"..."},
		Sentence: "what serves development and tests may import what it exercises, never a main package",
	},
	Rule{
		Layer: "provider contract", Packages: []string{"internal/provider"},
		Ours: words, Libraries: []string{strictly}, Never: impure,
		Sentence: "parts that stages are built from may import words",
	},
	Rule{
		Layer: "ordering", Packages: []string{"internal/ordering"},
		Ours: words, Never: impure,
		Sentence: "parts that stages are built from may import words",
	},
	Rule{
		Layer: "directory, limits and effects", Packages: []string{"internal/directory", "internal/limit", "internal/effect"},
		Ours: words, Libraries: []string{xsync}, Never: impure,
		Sentence: "parts that stages are built from may import words",
	},
	Rule{
		Layer: "registry of providers", Packages: []string{"internal/provider/all"},
		Ours: join(words, []string{"internal/provider/..."}), Never: impure,
		Sentence: "one adapter per provider: only the registry knows them all",
	},
	Rule{
		Layer: "provider's API", Packages: []string{"internal/provider/remote"},
		Ours: join(words, []string{"internal/provider"}), Never: impure,
		Sentence: "what asks a provider's API knows the contract and words; who makes the request and who keeps the credential are its arguments",
	},
	Rule{
		Layer: "provider", Packages: []string{"internal/provider/..."},
		// Standard Webhooks is a published standard as well as a sender; those who speak it build on it.
		Ours: join(words, []string{"internal/provider", "internal/provider/standardwebhooks"}), Libraries: []string{strictly}, Never: impure,
		Sentence: "one adapter per provider: it knows the contract, words and the standard it speaks, no other adapter, no network",
	},
	Rule{
		Layer: "business", Packages: []string{"internal/business/..."},
		Ours: join(words, []string{"internal/business/...", "internal/ordering", "internal/provider"}), Libraries: []string{strictly}, Never: impure,
		Sentence: "parts that stages are built from may import words; handlers decide and leave the writing to others",
	},
	Rule{
		Layer: "stage", Packages: stages,
		Ours: join(words, parts), Libraries: []string{xsync},
		Never:    []string{"os", "os/exec", "net", "log", "math/rand", "math/rand/v2"},
		Sentence: "stages never import each other or an adapter; they declare the one- or two-method interfaces they need",
	},
	Rule{
		Layer: "adapter", Packages: adapters,
		Ours: join(words, []string{"internal/awsfault"}), Libraries: []string{"..."}, Never: []string{lambdaLib},
		Sentence: "adapters import words only; they are the only code that knows AWS or the network, and they know nothing of each other",
	},
	Rule{
		Layer: "edge", Packages: edges,
		Ours: join(words, parts, stages, []string{"internal/telemetry"}), Libraries: []string{lambdaLib, strictly, xsync},
		Sentence: "edges are the only code that knows Lambda's event shapes; they call stages and know no AWS client",
	},
	Rule{
		Layer: "wiring", Packages: wiring,
		Ours: words, Libraries: []string{awsSDK, smithy},
		Sentence: "wiring turns the environment into values and clients; words and the SDK are all it needs",
	},
	Rule{
		Layer: "function", Packages: []string{"functions/..."},
		Ours: join(words, parts, stages, adapters, edges, wiring), Libraries: []string{"..."}, Never: []string{"github.com/spf13/cobra"},
		Sentence: "functions are parts lists of what is built for use; nothing for development is linked into them",
	},
	Rule{
		Layer: "capacity", Packages: []string{"internal/capacity"},
		Never:    impure,
		Sentence: "the calculator is arithmetic on its arguments: the standard library only",
	},
	Rule{
		Layer: "command", Packages: []string{"cmd/..."},
		Ours: join(words, parts, stages, adapters, edges, wiring, []string{"internal/capacity", "internal/devstack/...", "internal/conform/..."}), Libraries: []string{"..."},
		Sentence: "the command may use anything but what only tests use",
	},
)

// wordRules makes one rule a word, since words import each other only downward.
func wordRules() []Rule {
	var rules []Rule
	for i, word := range words {
		rules = append(rules, Rule{
			Layer: "word", Packages: []string{word},
			Ours: words[i+1:], Never: impure,
			Sentence: "words and rules are pure: the standard library only, and each other downward",
		})
	}
	return rules
}

// Linkless are packages that no program below Program may link, however far away.
type Linkless struct {
	Program  string // pattern
	Packages []string
	Sentence string
}

// Unlinked is what must not reach a function's binary by any way.
var Unlinked = []Linkless{{
	Program:  "functions/...",
	Packages: append([]string{"github.com/spf13/cobra", "github.com/awslabs/goformation", "github.com/johannesboyne/gofakes3"}, ours(helpers)...),
	Sentence: "function binaries link neither the local stack nor the command line: their size and their start are bounded",
}}

func join(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// ours writes directories of this module as import paths.
func ours(directories []string) []string {
	var out []string
	for _, d := range directories {
		out = append(out, module+"/"+d)
	}
	return out
}
