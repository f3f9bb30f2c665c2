package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// A command's name that is so many letters from the right one is taken for a slip.
const slipMax = 2

// noCommand says that a group has no such command, and which one it may have been.
func noCommand(c *cobra.Command, name string) error {
	c.SuggestionsMinimumDistance = slipMax
	perhaps := ""
	if near := c.SuggestionsFor(name); len(near) > 0 {
		slices.Sort(near)
		perhaps = " (perhaps " + strings.Join(near, " or ") + ")"
	}
	return fmt.Errorf("%q is no command of %s%s; see %s --help", name, c.CommandPath(), perhaps, c.CommandPath())
}

// badFlag says what is wrong with a flag. A misspelt command has its flags read as
// the group's: then the command is what is wrong.
func badFlag(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
		return noCommand(c, words[0])
	}
	problem := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		problem = strings.TrimSuffix(problem, cause.Error()) + wanted(cause)
	}
	return fmt.Errorf("%s; see %s --help", problem, c.CommandPath())
}

// wanted says what a flag takes whose value could not be read.
func wanted(cause error) string {
	number, ok := errors.AsType[*strconv.NumError](cause)
	switch {
	case ok && errors.Is(number.Err, strconv.ErrRange):
		return "the number is too large"
	case ok && number.Func == "ParseBool":
		return "want true or false"
	case ok && number.Func == "ParseFloat":
		return "want a number"
	case ok && number.Func == "ParseUint":
		return "want a whole number, 0 or more"
	case ok:
		return "want a whole number"
	case strings.HasPrefix(cause.Error(), "time: "):
		return "want a duration like 90s, 10m or 24h"
	}
	return cause.Error()
}

// required marks flags that a command cannot do without. Those that are missing are
// named together with its arguments, before cobra names them in its own words.
func required(c *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		if err := c.MarkFlagRequired(name); err != nil {
			panic("dakghar: " + err.Error()) // the flag's name is misspelt here
		}
	}
	arguments := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if err := arguments(c, args); err != nil {
			return err
		}
		var missing []string
		for _, name := range flags {
			if !c.Flags().Changed(name) {
				missing = append(missing, "--"+name)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		return fmt.Errorf("%s needs %s; see %s --help", name, enumerated(missing), c.CommandPath())
	}
	return c
}

// enumerated writes words as a person lists them.
func enumerated(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
