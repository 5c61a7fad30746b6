// Package webapp is what is asked of applications over HTTP: requests that a user describes, and Vault's
// transit engine. A description becomes a source of requests; it stands between the agent, which hands
// the source to the generator, and the tool, which reads the description where the user is.
package webapp
