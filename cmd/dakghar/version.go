package main

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionView is what this program was built from, in JSON.
type versionView struct {
	Version  word   `json:"version"`  // a tag, or a time and a revision
	Revision word   `json:"revision"` // null where it was built outside its repository
	Modified bool   `json:"modified"` // the sources were not those of the revision
	Go       string `json:"go"`
}

func (a *app) versionCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "version",
		Short:   "Say which version this is",
		Long:    `Say what this program was built from. Functions that are deployed may be of another release.`,
		Example: `  dakghar version --json`,
	}, func(context.Context, []string) error {
		info, ok := a.built()
		if !ok {
			info = &debug.BuildInfo{}
		}
		v := versionView{Version: word(info.Main.Version), Go: info.GoVersion}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = word(s.Value)
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
		if a.json {
			return a.printJSON(v)
		}
		return a.table("", [][]string{
			{"version", string(v.Version)}, {"revision", string(v.Revision)}, {"modified", yes(v.Modified)}, {"go", v.Go},
		})
	})
}
