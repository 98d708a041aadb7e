"""The recurrent models of the 2019 papers as subjects."""
