package explain

// Rules identifies the rules: results of different rules are not counted together. It is a digest of the code that
// judges, without comments, which a test compares; whoever changes a rule sets it anew.
const Rules = "e802bcf13f40"
