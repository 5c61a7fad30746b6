package lab

// A Config is how a lab is started.
type Config struct {
	Kit Kit
	// Argv starts this program again as the holder: the command must call Hold with the same kit.
	Argv []string
	// Agent is what host.Agent as the first argument of a command stands for.
	Agent []string
	// UserNamespace makes the lab in a user namespace even for root; without root it always is in one.
	UserNamespace bool
}
