// Package strategy holds the settings by which nodes share the steps of a job, as users
// give them and as recipes store them. The strategies are in the packages below it.
package strategy
