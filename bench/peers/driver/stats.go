package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

func logf(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, values...))
}

// Spread is what is told of a series of times, in milliseconds.
type Spread struct {
	Count   int     `json:"count"`
	Median  float64 `json:"median"`
	P99     float64 `json:"p99"`
	Longest float64 `json:"longest"`
	// Missed are samples that had no end within their limit; the others are those that had.
	Missed int `json:"missed"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func spreadOf(samples []time.Duration, missed int) Spread {
	spread := Spread{Count: len(samples), Missed: missed}
	if len(samples) == 0 {
		return spread
	}
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	rank := func(share float64) float64 {
		return milliseconds(sorted[min(len(sorted)-1, int(share*float64(len(sorted))))])
	}
	spread.Median, spread.P99, spread.Longest = rank(0.5), rank(0.99), milliseconds(sorted[len(sorted)-1])
	return spread
}
